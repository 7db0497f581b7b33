"""Operations of the REST API by what they act on. Those of REST workers and events are in folders of their own."""
