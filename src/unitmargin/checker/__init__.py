"""An independent checker of certificates: NumPy float64, and nothing of what made them.

It reads the deployed network's file and the certified inputs, evaluates the network itself, bounds
its own rounding and that of the deployed executions, and tells for each certificate the largest
radius that it can prove. Only the standard library and NumPy are imported, so that an auditor can
read all of it, in this order: ``strict`` (limits of files), ``arithmetic`` (rounding), ``reading``
(files), ``bounds`` (norms), ``step`` (what a layer is), ``fourier`` (convolutions), ``exact``,
``l2_pool``, ``slices`` (of maps), ``mixing``, ``reflection``, ``layers`` (one function a kind),
``network`` (the proof), ``units`` (of radii), ``table`` (certificates and verdicts). The proof is
in docs/soundness.md, section "The checker".
"""

from unitmargin.checker.reading import CheckError
from unitmargin.checker.table import Certificate, Verdict, check, write

__all__ = ["Certificate", "CheckError", "Verdict", "check", "write"]
