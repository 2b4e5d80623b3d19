"""When the end of a certificate is a problem."""

from __future__ import annotations

WARN_DAYS = 14
"""A certificate that expires sooner is a problem: the renewal that an operator has set up does not work."""
DAY_S = 86_400.0


def expiry_problem(expires_s: float, now_s: float) -> str:
    """Why a certificate needs attention: it has expired, or soon does; empty if it does not.

    Args:
        expires_s: seconds since the epoch. now_s: the same.
    """
    days = (expires_s - now_s) / DAY_S
    if days <= 0:
        return f"expired {-days:.0f} days ago" if days < -1 else "has expired"
    if days < WARN_DAYS:
        return f"expires in {days:.0f} days" if days >= 2 else f"expires in {days * 24:.0f} hours"
    return ""
