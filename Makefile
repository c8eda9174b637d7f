# The tasks are in tasks.py, which needs no make; this only saves typing `python3 tasks.py`.
TASKS := demo test lint docs wheels bench compat

.PHONY: $(TASKS)
$(TASKS):
	python3 tasks.py $@
