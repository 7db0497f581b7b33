"""What the code says about itself: sizes, layers, exports, vocabulary, documents."""
