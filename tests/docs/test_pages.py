"""Marks on blocks of code, as described in CONTRIBUTING.md."""

import pytest

from tests.docs.pages import blocks_in

TEXT = """
<!-- run -->
```python
first
```

```bash
second
```

<!-- run needs=gpu -->
```bash
third
```

<!-- run unless=gpu needs=jq -->
```bash
fourth
```
"""


def test_blocks_are_found_in_order_with_their_marks():
    found = blocks_in(TEXT)
    assert [block.code for block in found] == ["first\n", "second\n", "third\n", "fourth\n"]
    assert [block.runs for block in found] == [True, False, True, True]
    assert [block.language for block in found] == ["python", "bash", "bash", "bash"]


def test_a_condition_decides_where_a_block_runs():
    first, second, third, fourth = blocks_in(TEXT)
    assert first.applies(set())
    assert not second.applies({"gpu", "jq"})
    assert third.applies({"gpu"})
    assert not third.applies({"jq"})
    assert fourth.applies({"jq"})
    assert not fourth.applies({"gpu", "jq"})


def test_a_misspelt_mark_is_an_error():
    with pytest.raises(ValueError, match="run need=gpu"):
        blocks_in("<!-- run need=gpu -->\n```bash\nls\n```\n")
