/* Errors of net as text for people: one line that names the address, file or option at fault. */
#ifndef GW_NET_NET_ERROR_H
#define GW_NET_NET_ERROR_H

enum {
    GW_NET_ERROR_MAX = 192, /* bytes of an error text */
};

/* Writes the text of an error and returns `code`. */
__attribute__((format(printf, 3, 4))) int gw_net_fail(char *error, int code, const char *format,
                                                      ...);

#endif
