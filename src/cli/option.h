/*
 * What the value of an option may be. Who refuses one has said why, in one line that names the
 * option and the value, and returns EINVAL, as a parser of argp does.
 */
#ifndef GW_CLI_OPTION_H
#define GW_CLI_OPTION_H

#include <argp.h>
#include <stdint.h>

/* Prints "--option=text: expected ", and what is expected. Returns EINVAL. */
error_t gw_option_refuse(const char *option, const char *text, const char *expected, ...)
    __attribute__((format(printf, 3, 4)));

/* A whole number from `low` to `high`. */
error_t gw_option_number(const char *option, const char *text, uint64_t low, uint64_t high,
                         uint64_t *number);

#endif
