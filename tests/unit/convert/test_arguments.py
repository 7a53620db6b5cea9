"""How every conversion takes its arguments: arrays, edges, and nonsense."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from leakcap import convert
from leakcap.errors import InputError
from leakcap.ground import proofs
from tests.claims.convert.channels import GENERATORS

PAGES = ("currency", "first-moment", "pool", "composition", "comparisons")
VECTORISED = [
    (convert.posterior, ([0.0, 1e-9, 0.3, 2.0], [[0.5], [0.01]])),
    (convert.mutual_information, ([0.6, 0.9, 1.0], [[0.5], [0.01]])),
    (convert.membership, ([0.0, 0.1, 0.5], [[0.5], [0.1]])),
    (convert.name_a_member, ([0.0, 0.1, 0.5], [[0.5], [0.1]])),
    (convert.precision, ([0.0, 0.1, 0.5], [[1.0], [0.3], [0.001]], 0.2)),
    (convert.true_positive_rate, ([0.0, 0.1, 0.5], [[0.0], [0.01], [1.0]], 0.2)),
    (convert.from_dp, ([0.0, 1.0, 9.0], [[0.0], [0.1]])),
    (convert.dp_identification_failure, ([0.0, 1.0, 9.0], [[0.5], [0.1]])),
    (convert.dp_mutual_information, ([0.0, 1e-9, 1.0, 9.0], [[1], [100]])),
    (convert.zcdp_mutual_information, ([0.0, 1.0, 9.0], [[1], [100]])),
    (convert.rdp_reconstruction, ([1e-9, 0.5, 1.0], [[0.0], [1.0]], 2.0)),
    (convert.generalisation, ([0.0, 0.1, 5.0],)),
    (convert.from_first_moment, ([0.0, 0.1, 5.0], [[1e-9], [1.0], [1e9]])),
    (convert.scale_for_mip, ([0.0, 0.1, 5.0], [[1e-9], [0.1], [0.4999]])),
    (convert.bits_right, ([5, 8], [[0], [4], [5]])),
]


@pytest.mark.parametrize(("function", "arguments"), VECTORISED, ids=lambda part: getattr(part, "__name__", ""))
def test_arrays_give_what_their_elements_give(function, arguments) -> None:
    whole = function(*arguments)
    broadcast = np.broadcast_arrays(*arguments)
    assert isinstance(whole, np.ndarray)
    assert whole.shape == broadcast[0].shape
    for place in np.ndindex(whole.shape):
        one = function(*(each[place] for each in broadcast))
        assert type(one) is float
        assert one == whole[place]


@pytest.mark.parametrize("f", [*GENERATORS, GENERATORS["chi2"]])
def test_divergence_bounds_work_on_arrays(f) -> None:
    whole = convert.posterior_f([0.0, 0.1, 0.5], [[0.5], [0.1], [1.0]], f)
    assert whole.shape == (3, 3)
    assert whole[1, 2] == convert.posterior_f(0.5, 0.1, f)
    assert (whole[2] == 1).all()
    assert (whole[:, 0] == [0.5, 0.1, 1.0]).all()


BAD_CALLS = [
    lambda: convert.posterior(-0.1, 0.5),
    lambda: convert.posterior(math.nan, 0.5),
    lambda: convert.posterior(math.inf, 0.5),
    lambda: convert.posterior(0.1, 0.0),
    lambda: convert.posterior(0.1, 1.1),
    lambda: convert.posterior([0.1, -0.1], 0.5),
    lambda: convert.posterior("0.1", 0.5),
    lambda: convert.posterior(True, 0.5),
    lambda: convert.posterior(None, 0.5),
    lambda: convert.posterior(0.1j, 0.5),
    lambda: convert.mutual_information(0.4, 0.5),
    lambda: convert.mutual_information(1.2, 0.5),
    lambda: convert.membership(0.1, 0.0),
    lambda: convert.membership(0.1, 1.0),
    lambda: convert.name_a_member(0.1, 1.0),
    lambda: convert.precision(0.1, 0.0, 0.5),
    lambda: convert.true_positive_rate(0.1, 1.5),
    lambda: convert.true_positive_rate(0.1, 0.1, 0.0),
    lambda: convert.from_dp(-1),
    lambda: convert.from_dp(1, 2),
    lambda: convert.from_dp(1, relation="bounded"),
    lambda: convert.from_dp(1, sampling="shuffle"),
    lambda: convert.dp_mutual_information(1, 0),
    lambda: convert.dp_mutual_information(1, 1.5),
    lambda: convert.zcdp_mutual_information(1, True),
    lambda: convert.rdp_reconstruction(0.1, 1, 1.0),
    lambda: convert.generalisation(-1),
    lambda: convert.from_first_moment(-1, 1),
    lambda: convert.from_first_moment(1, 0),
    lambda: convert.from_first_moment(1, math.inf),
    lambda: convert.scale_for_mip(-1, 0.1),
    lambda: convert.scale_for_mip(1, 0.0),
    lambda: convert.scale_for_mip(1, 0.5),
    lambda: convert.scale_for_mip(1, 1e-17),
    lambda: convert.scale_for_mip(1, True),
    lambda: convert.bits_right(4, 5),
    lambda: convert.bits_right(4, 2, "quarter"),
    lambda: convert.bits_right(4, -1),
    lambda: convert.agreement_prior([[0, 2]], 1),
    lambda: convert.agreement_prior([0, 1], 1),
    lambda: convert.agreement_prior([[0, 1]], 3),
    lambda: convert.agreement_prior([["a", "b"]], 1),
]


@pytest.mark.parametrize("call", BAD_CALLS)
def test_senseless_arguments_are_refused(call) -> None:
    with pytest.raises(InputError):
        call()


def test_every_public_function_claims_and_names_its_proof() -> None:
    assert convert.__all__ == sorted(convert.__all__)
    for name in convert.__all__:
        function = getattr(convert, name)
        assert "Guarantee:" in function.__doc__, name
        assert ">>>" in function.__doc__, name
        if name != "percent_up":  # which prints what the others have proved
            assert any(f"{function.__module__}.{name}" in proofs.claims()[page] for page in PAGES)


def test_importing_convert_stays_light() -> None:
    """Convert and what it imports, without the package's other modules."""
    code = f"""
import sys, types
sys.modules["leakcap"] = package = types.ModuleType("leakcap")
package.__path__ = [{str(Path(convert.__file__).parents[1])!r}]
import leakcap.convert
assert not {{"scipy.stats", "scipy.optimize", "scipy.integrate", "sklearn", "pandas"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
