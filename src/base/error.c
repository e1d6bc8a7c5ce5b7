/* Messages of the error codes, made from the one list in error.h. */
#include "base/error.h"

const char *gw_error_message(int error)
{
    switch (error) {
    case GW_OK:
        return "success";
#define GW_ERROR_CASE(name, code, message)                                                         \
    case GW_ERR_##name:                                                                            \
        return message;
        GW_ERROR_MAP(GW_ERROR_CASE)
#undef GW_ERROR_CASE
    default:
        return "unknown error";
    }
}
