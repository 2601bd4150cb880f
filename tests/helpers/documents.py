"""What ppdp makes of a certificate's record, for tests that change its document and do not ask whether it holds."""

from functools import wraps

from ppdp.certificate.pages import card, html, meaning, points, profile, text
from ppdp.certificate.record import Record, read_as
from ppdp.certificate.replay import trust
from ppdp.certificate.share import registry_record

__all__ = [
    "detection_power",
    "points_of",
    "privacy_profile",
    "record_of",
    "registry_sections",
    "render_card",
    "render_fragment",
    "render_page",
    "render_text",
    "rests_on",
]


def record_of(document):
    return read_as(Record, document)


def of_document(function):
    """The same function of a document."""

    @wraps(function)
    def read(document, *others):
        return function(record_of(document), *others)

    return read


detection_power = of_document(meaning.detection_power)
points_of = of_document(points.points_of)
privacy_profile = of_document(profile.privacy_profile)
registry_sections = of_document(registry_record._known)
render_card = of_document(card.render_card)
render_fragment = of_document(html.render_fragment)
render_page = of_document(html.render_page)
render_text = of_document(text.render_text)
rests_on = of_document(trust.rests_on)
