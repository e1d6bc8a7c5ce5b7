/*
 * Error codes of the library: 0 is success, errors are negative.
 *
 * One list makes the enum and the messages. A function that can fail documents which of these it
 * returns and what the caller must then do.
 */
#ifndef GW_BASE_ERROR_H
#define GW_BASE_ERROR_H

#define GW_ERROR_MAP(X)                                                                            \
    X(INVALID, -1, "invalid argument")                                                             \
    X(NO_ROOM, -2, "a configured limit is reached")                                                \
    X(NO_MEMORY, -3, "out of memory")                                                              \
    X(UNKNOWN, -4, "no such name")                                                                 \
    X(MALFORMED, -5, "malformed packet")                                                           \
    X(VERSION, -6, "wrong magic or version")                                                       \
    X(TIMED_OUT, -7, "no progress before the deadline")                                            \
    X(SYSTEM, -8, "the operating system refused")                                                  \
    X(RANGE, -9, "value out of range")                                                             \
    X(UNIT, -10, "wrong or missing unit")                                                          \
    X(OUT, -11, "the job has failed and must be joined again")

enum gw_error {
    GW_OK = 0,
#define GW_ERROR_ENUM(name, code, message) GW_ERR_##name = code,
    GW_ERROR_MAP(GW_ERROR_ENUM)
#undef GW_ERROR_ENUM
};

/* A message for any code, in static memory; never NULL. */
const char *gw_error_message(int error);

#endif
