"""Mutual information, success rates and DP parameters, each in terms of the others.

Arguments broadcast; plain numbers give a plain float. Information is in nats. What bounds an attacker from above is
rounded up, budgets and failure rates are rounded down. Proofs: `docs/proofs/currency.md`.

A prior is the success of the best guess *without* the release, for an attacker who knows pool and worlds.
"""

from leakcap.convert.differential_privacy import (
    dp_identification_failure,
    dp_mutual_information,
    from_dp,
    from_zcdp,
    gaussian_epsilon,
    rdp_reconstruction,
    zcdp_mutual_information,
)
from leakcap.convert.first_moment import from_first_moment, scale_for_mip
from leakcap.convert.information import (
    generalisation,
    membership,
    mutual_information,
    name_a_member,
    posterior,
    posterior_f,
    precision,
    true_positive_rate,
)
from leakcap.convert.priors import agreement_prior, bits_right
from leakcap.convert.records import each_record, one_record
from leakcap.convert.rounding import percent_up
from leakcap.convert.several import add_up, worst_case_noise

__all__ = [
    "add_up",
    "agreement_prior",
    "bits_right",
    "dp_identification_failure",
    "dp_mutual_information",
    "each_record",
    "from_dp",
    "from_first_moment",
    "from_zcdp",
    "gaussian_epsilon",
    "generalisation",
    "membership",
    "mutual_information",
    "name_a_member",
    "one_record",
    "percent_up",
    "posterior",
    "posterior_f",
    "precision",
    "rdp_reconstruction",
    "scale_for_mip",
    "true_positive_rate",
    "worst_case_noise",
    "zcdp_mutual_information",
]
