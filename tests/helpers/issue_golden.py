"""Issue the golden certificates of a release, once: ``python tests/helpers/issue_golden.py``.

One certificate of every kind is written to ``golden/VERSION``, with the figures that each must give for ever and a
signature of one. They are kept as they are: a folder that is there is never written again, and later releases only
read it.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "certificate" / "golden"
FIGURES, PUBLIC_KEY, SIGNED = "figures.json", "public.pem", "unconditional"


def issue_all() -> None:
    """Write the folder of this release."""
    import ppdp

    target = FOLDER / ppdp.__version__
    if target.exists():
        sys.exit(f"{target} is there: the certificates of a release are issued once.")
    import conftest  # noqa: F401  every fit is the first one
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    from zoo import ZOO, certificate, of_a_search, stated

    target.mkdir(parents=True)
    figures = {}
    for name, issued in [*((name, certificate(name)) for name in ZOO), *of_a_search().items(), ("stated", stated())]:
        file = re.sub(r"\W+", "-", name.replace("'s", "")).lower() + ".json"
        issued.save(target / file)
        figures[file] = {
            "status": issued.status,
            "epsilon": issued.epsilon,
            "delta": issued.delta,
            "epsilon_at_1e-5": issued.epsilon_at(1e-5),
            "digest": issued.digest,
        }
    (target / FIGURES).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    key = Ed25519PrivateKey.generate()  # nobody keeps it
    (target / PUBLIC_KEY).write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    certificate(SIGNED).sign(key).save(target / f"{SIGNED}.json.sig")


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]
    issue_all()
