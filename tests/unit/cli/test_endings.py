"""How commands end: what the library says of its arguments, in words of the command line."""

from __future__ import annotations

import pytest

from leakcap.cli.endings import as_options

SAID = {
    "leave it out with drop=['labels_', 'n_iter_']": "leave it out with --drop labels_,n_iter_",
    "bound it with clip=(low, high)": "bound it with --clip LOW,HIGH",
    "raise draws=, or lower the cap": "raise --draws, or lower the cap",
    "give draws=4096": "give --draws 4096",
    "missing_as= needs a name, such as missing_as=missing": "--missing-as needs a name, such as --missing-as missing",
    "bins need low= and high=, the range": "bins need --low and --high, the range",
    "below=3 and sex=male stay": "below=3 and sex=male stay",
}


@pytest.mark.parametrize("said", SAID)
def test_arguments_are_named_as_options(said: str) -> None:
    assert as_options(said) == SAID[said]
