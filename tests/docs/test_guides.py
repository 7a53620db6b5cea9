"""Every block of code in the guides, on the first page and in the README runs, and prints what it is said to print."""

import pytest

from tests.docs.pages import ROOT, agree, blocks, faults, renewed

PAGES = [ROOT / "README.md", ROOT / "docs" / "index.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
FOREIGN = ("import diffprivlib", "from diffprivlib", "import opendp", "from torch", "import torch")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_runs_and_prints_what_it_shows(page, tmp_path, nursery):
    assert faults(page.read_text(), tmp_path, nursery) == []


def test_only_code_of_other_libraries_is_not_run():
    unrun = [block for page in PAGES for block in blocks(page.read_text()) if "not run here" in block.info]
    assert len(unrun) <= 6
    assert [block.info for block in unrun if not any(name in block.body for name in FOREIGN)] == []


def test_every_guide_is_in_the_navigation_and_on_the_first_page():
    first, navigation = (ROOT / "docs" / "index.md").read_text(), (ROOT / "mkdocs.yml").read_text()
    guides = [f"guides/{page.name}" for page in PAGES if page.parent.name == "guides"]
    assert [name for name in guides if f"]({name})" not in first or f": {name}\n" not in navigation] == []


GOOD = r"""
```python
from pathlib import Path
Path("greeting.txt").write_text("hello 7 times")
print("    took 0.31 s, noise   1.5e-05")
```

```text
took 12 s, noise 0.21
```

```console
$ cat greeting.txt   # a comment
$ python -c \
    "print('not shown')"
```

Not every output is shown, and a file may be:

```python title="polite.py"
print("good day")
```

```console
$ python polite.py
```

```text
good day
```

```console title="exit status 1"
$ cat greeting.txt
$ python -c "raise SystemExit('no luck')"
```

```{.text .exact}
hello 7 timesno ...
```

```python title="elsewhere, not run here"
import diffprivlib
```
"""


def test_a_page_in_order_has_no_faults(tmp_path, nursery):
    assert faults(GOOD, tmp_path, nursery) == []


PLANTED = {
    "a block that fails": ("```python\nundefined\n```", "NameError"),
    "a block that exits": ("```python\nraise SystemExit\n```", "SystemExit"),
    "a word that is not printed": ("```python\nprint('at most 5 %')\n```\n```text\nat least 5 %\n```", "shows"),
    "a line too many": ("```python\nprint('one')\n```\n\n```text\none\ntwo\n```", "shows"),
    "a line too few": ("```python\nprint('one\\ntwo')\n```\n\n```text\none\n```", "shows"),
    "another number in an exact output": ("```python\nprint(1)\n```\n```{.text .exact}\n2\n```", "shows"),
    "a command that fails": ("```console\n$ cat nowhere.txt\n```", "status 1"),
    "an option that does not exist": ("```console\n$ leakcap explain --loudly eps=1\n```", "status 2"),
    "a failure that does not happen": ('```console title="exit status 1"\n$ ls\n```', "not 1"),
    "a command that is not allowed": ("```console\n$ rm greeting.txt\n```", "rm is none of"),
    "a target that the Makefile has not": ("```console\n$ make coffee\n```", "coffee"),
    "a console without a prompt": ("```console\nls\n```", "no line begins"),
    "a language that nobody checks": ("```bash\nls\n```", "no kind of block"),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_fault_is_found(planted, tmp_path, nursery):
    text, told = PLANTED[planted]
    found = faults(f"# A page\n\n{text}\n", tmp_path, nursery)
    assert len(found) == 1
    assert told in found[0].words


def test_pages_do_not_see_each_other_and_find_leakcap_by_themselves(tmp_path, nursery):
    """A copy starts with the libraries alone: what one page imports, sets or writes is not there for the next."""
    first = "```python\nimport leakcap.audit, os\nos.environ['SEEN'] = os.getcwd()\nleft = 1\n```"
    then = "```python\nimport os, sys\nprint('leakcap' in sys.modules, 'SEEN' in os.environ, 'left' in globals())\n```"
    shown = "\n```text\nFalse False False\n```"
    for number, page in enumerate((first, then + shown)):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert faults(f"{page}\n", folder, nursery) == []


def test_a_page_is_renewed_where_it_shows_something_else(tmp_path, nursery):
    old = "```python\nprint('one\\ntwo')\n```\n\n```text\nthree\n```\n\nThe end.\n"
    assert renewed(old, tmp_path, nursery) == old.replace("three", "one\ntwo")


def test_numbers_times_rules_and_wrapping_may_differ():
    assert agree("Written in 9 s ────\n [0.25 1.5]", "Written in 950 ms ─\n[ \u22121e-05\n  22.75 ]")
    assert not agree("Written in 9 s", "Written in 9 m")
    assert not agree("kept", "NOT KEPT")
