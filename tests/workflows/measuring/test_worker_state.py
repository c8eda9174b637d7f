import subprocess
import sys
import time

from workflows.measuring.worker_state import seconds_alive


def test_time_before_the_first_call_counts():
    code = "import time; time.sleep(0.5)\n"
    code += "from workflows.measuring.worker_state import seconds_alive; print(seconds_alive())"
    before = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    took = time.monotonic() - before
    if sys.platform == "linux":
        assert 0.45 < float(done.stdout) <= took + 0.05
    assert 0 <= seconds_alive() <= seconds_alive()
