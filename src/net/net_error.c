/* Texts of errors; see net_error.h. */
#include "net/net_error.h"

#include <stdarg.h>
#include <stdio.h>

int gw_net_fail(char *error, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, GW_NET_ERROR_MAX, format, args);
    va_end(args);
    return code;
}
