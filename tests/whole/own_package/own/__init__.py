"""A package of somebody else, with a stage and a mechanism for ppdp."""
