"""Files that people and several fronts share: changed by turns, their problems with places."""
