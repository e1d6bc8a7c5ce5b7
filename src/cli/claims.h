/*
 * Verdicts over the claims of a scenario: what was claimed, what was measured, and whether it
 * holds.
 *
 * The expression of a claim is evaluated once per seed, over the results of all points with that
 * seed as `--json` prints them; what is measured is the median over seeds. One with `seeds:
 * together` is evaluated once, over the results of all points with all seeds. A claim that --set
 * took points away from is not computed, which is no error. A failed claim is a result, not a
 * failure.
 */
#ifndef GW_CLI_CLAIMS_H
#define GW_CLI_CLAIMS_H

#include <jansson.h>

#include "config/scenario.h"

struct gw_claims;

/*
 * Compiles all expressions. NULL after a complaint that names the place of one that is none. The
 * sweep must outlive the claims.
 */
struct gw_claims *gw_claims_open(const struct gw_sweep *sweep);
/*
 * Judges by the results of all runs: all seeds of the first point, then of the next. Returns
 * GW_EXIT_OK, or after a complaint for each GW_EXIT_USAGE when an expression gives nothing, which
 * with `is_narrowed` is allowed: points may be absent.
 */
int gw_claims_judge(struct gw_claims *claims, const json_t *results, bool is_narrowed);
/* The verdicts as text on standard output. */
void gw_claims_print(const struct gw_claims *claims);
/* The verdicts as a JSON array; the caller owns it. */
json_t *gw_claims_json(const struct gw_claims *claims);
void gw_claims_close(struct gw_claims *claims);

#endif
