/*
 * Random options of what messages and gradients can do without, and what they are worth, for
 * random scenarios. All are drawn from a stream of their own.
 */
#ifndef GW_TESTS_RANDOM_WORTH_H
#define GW_TESTS_RANDOM_WORTH_H

#include <stdbool.h>
#include <stdio.h>

#include "base/prng.h"
#include "base/time.h"

/* A line of an entry of messages for the parameter `name`, or none; false: it is none of these. */
bool gw_random_worth_message(FILE *out, const char *name, struct gw_prng *prng);

/* Lines of a job whose gradients travel as messages. */
void gw_random_worth_job(FILE *out, bool may_lose, struct gw_prng *prng);

/* Lines of a job whose sums may lack stragglers. */
void gw_random_worth_sum(FILE *out, gw_time brtt, struct gw_prng *prng);

#endif
