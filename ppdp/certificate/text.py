"""The certificate for a terminal."""

from __future__ import annotations

from typing import Any

from ppdp.distance import Distance
from ppdp.domain import unit_in_words
from ppdp.privacy.parts import Part

__all__ = ["render_text"]


def render_text(c: dict[str, Any]) -> str:
    """Plain text of a certificate, first word its status."""
    lines = [
        f"{c['status']} ({c['epsilon']:g}, {c['delta']:g})-differential privacy, end to end",
        f"  adjacency   {c['adjacency']}; protects {unit_in_words(c['rows_per_unit'])}",
    ]
    lines += [f"  because     {reason}" for reason in c["reasons"]]
    lines += [f"  warning     {warning}" for warning in c["warnings"]]
    lines += [f"  fact        {f['name']} = {f['value']} ({f['origin']})" for f in c["facts"]]
    for step in c["steps"]:
        distance = Distance.from_dict(step["distance"]).describe()
        lines.append(f"  stage       {step['name']} ({step['class']}, {step['way']}): {distance}  [{step['page']}]")
        for condition in step["conditions"]:
            word = "tested" if condition["tested"] else "ASSUMED"
            lines.append(f"    {word:<9} {condition['statement']}")
    for release in c["releases"]:
        served, noise = ", ".join(release["serves"]), release["noise_scale"]
        lines.append(f"  released    {release['statistic']} for {served}: noise {noise:.4g}, mu {release['mu']:.4g}")
    if c["gate"]:
        g = c["gate"]
        noise = f"mu {g['mu']:.4g}" if g["mu"] is not None else f"{g['kind']} noise {g['noise_scale']:.4g}"
        rung = f" at rung {g['ladder']['rung'] + 1} of {len(g['ladder']['rungs'])}" if g["ladder"] else ""
        lines.append(f"  gate        passed{rung}; {noise}, delta {g['delta']:.3g} ({g['rule']})")
    if c["mechanism"]:
        m = c["mechanism"]
        lines.append(
            f"  mechanism   {m['name']} ({m['class']}): {m['steps']} x {m['size']} numbers,"
            f" noise {m['noise_scale']:.4g}" + (f", mu {m['mu']:.4g}" if m["mu"] is not None else "")
        )
    lines.append(f"  total       mu {c['total']['mu']:.6g}")
    lines += [f"  and         {Part.from_dict(part).describe()}" for part in c["total"]["parts"]]
    lines += [f"  not covered {words}" for words in c["not_covered"]]
    lines.append(f"  digest      {c['digest']}")
    return "\n".join(lines)
