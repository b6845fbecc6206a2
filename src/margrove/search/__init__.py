"""One search by cross-validation for every family of learners. A family gives its grid, its problem and its solve."""
