/* A library that is no tuner at all. */
int chain_empty_has_no_tuner;
