"""The values that flow: public facts, distances, formulas; checks of what users give."""
