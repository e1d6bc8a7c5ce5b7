/*
 * Quantities with units, as people write them: "2MiB", "800Gbps", "600ns", "0.25", "yes".
 *
 * Decimal fractions are exact down to 1e-9 of the unit written ("1.5us" is 1500000 ps); anything
 * after the ninth fractional digit is refused. The parsers need no locale and no C library.
 */
#ifndef GW_BASE_UNITS_H
#define GW_BASE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fixed.h"
#include "base/time.h"

/*
 * Each parser returns 0 and stores the value, or returns GW_ERR_INVALID (not a number),
 * GW_ERR_UNIT (unit missing or of another kind) or GW_ERR_RANGE, and stores nothing.
 */

/* ps, ns, us, ms, s. "0" needs no unit. Result in picoseconds. */
int gw_parse_time(const char *text, gw_time *time);
/* B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB; a bare number is bytes. */
int gw_parse_bytes(const char *text, uint64_t *bytes);
/* bps, Kbps, Mbps, Gbps, Tbps. Result in bit/s, at least GW_RATE_BPS_MIN. */
int gw_parse_rate(const char *text, uint64_t *rate_bps);
/* A plain decimal number, or a percentage ("25%"), as Q16 rounded to nearest. May be negative. What
 * is not 0 does not become 0: less than a unit, 1/65536, is out of range. */
int gw_parse_q16(const char *text, gw_q16 *value);
/* A probability from 0 to 1, or a percentage, in 1/2^32, likewise: 2^32 is certain. */
int gw_parse_chance(const char *text, uint64_t *chance_q32);
/* A whole number without unit. */
int gw_parse_count(const char *text, uint64_t *count);
/* yes/no, true/false, on/off. */
int gw_parse_bool(const char *text, bool *value);

/* True when two strings are equal; for code that must not call the C library. */
bool gw_text_equal(const char *a, const char *b);

#endif
