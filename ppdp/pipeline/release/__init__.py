"""What leaves a fitted pipeline: released arrays, exports, tables."""
