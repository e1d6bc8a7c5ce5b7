/*
 * What calls that may lose a part must give. Each rank brings a bit of its own in every element, so
 * that a sum says whose values it has: as many as its count. Of what is missing all ranks know
 * alike, and nobody misses more than the bounds.
 */
#ifndef GW_TESTS_PARTS_MODEL_H
#define GW_TESTS_PARTS_MODEL_H

#include "call_model.h"

/* What a call with parts has given to one rank. */
struct gw_parts_model_result {
    const unsigned char *out;
    const uint64_t *arrived;
    const uint16_t *counts;
    uint64_t missing;
    uint32_t fragment; /* elements */
};

/* Fragments that a rank gets. */
uint64_t gw_parts_model_fragments(const struct gw_model_call *call, uint32_t world,
                                  uint32_t fragment);

/* What the rank brings. */
void gw_parts_model_fill(const struct gw_model_call *call, uint32_t world, uint32_t rank, void *in);

/* Fails the test if the result is none that there can be. Returns a digest that is equal at all
 * ranks of a call whose results are. */
uint64_t gw_parts_model_check(const struct gw_model_call *call, uint32_t world, uint32_t rank,
                              const struct gw_parts_model_result *result);

/* The same of a pull, whose value holds some of the pushes `begun`, and of those that are `due` all
 * but what each allows: `bounds` of all pushes. */
void gw_parts_model_check_pull(const struct gw_model_call *call,
                               const struct gw_parts_model_result *result, uint32_t begun,
                               uint32_t due, const gw_q16 *bounds);

#endif
