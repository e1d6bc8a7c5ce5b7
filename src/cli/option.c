/* Values of options; see option.h. */
#include "cli/option.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/units.h"
#include "cli/cli.h"

enum {
    EXPECTED_MAX = 256, /* characters; a longer text is cut off */
};

error_t gw_option_refuse(const char *option, const char *text, const char *expected, ...)
{
    char sentence[EXPECTED_MAX];
    va_list args;
    va_start(args, expected);
    vsnprintf(sentence, sizeof(sentence), expected, args);
    va_end(args);
    gw_complain("--%s=%s: expected %s", option, text, sentence);
    return EINVAL;
}

error_t gw_option_number(const char *option, const char *text, uint64_t low, uint64_t high,
                         uint64_t *number)
{
    if (gw_parse_count(text, number) == 0 && *number >= low && *number <= high)
        return 0;
    return gw_option_refuse(option, text, "a whole number from %" PRIu64 " to %" PRIu64, low, high);
}
