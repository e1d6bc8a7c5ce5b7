/*
 * Fuzz targets in the ordinary test run.
 *
 * A target has libFuzzer's form. Built with clang, -fsanitize=fuzzer and
 * -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION, the file is a fuzzer; otherwise its main() replays
 * the committed corpus and then a fixed number of mutants of it, the same in every run.
 */
#ifndef GW_TESTS_REPLAY_H
#define GW_TESTS_REPLAY_H

#include <stddef.h>
#include <stdint.h>

/* The target; returns 0, and fails an assertion when a property does not hold. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Runs the target on each file of tests/fuzz/corpus/`corpus`, then on `rounds` mutants. */
void gw_test_replay(const char *corpus, uint64_t seed, uint32_t rounds,
                    int (*target)(const uint8_t *data, size_t size));

#endif
