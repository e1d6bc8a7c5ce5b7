/* The one way to complain; see cli.h. */
#include <argp.h>
#include <stdarg.h>
#include <stdio.h>

#include "cli/cli.h"

void gw_complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("gradwire: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

void gw_no_hints(struct argp_state *state)
{
    static FILE *nowhere;
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    if (nowhere)
        state->err_stream = nowhere;
}
