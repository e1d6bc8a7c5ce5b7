/*
 * Trials on the loopback interface: what the sockets of this machine can do.
 */
#ifndef GW_NET_PROBE_H
#define GW_NET_PROBE_H

#include <stdbool.h>
#include <stdint.h>

struct gw_probe {
    bool has_sockets;      /* else nothing of the rest is known */
    bool cuts_trains;      /* a train that is sent as one arrives */
    bool joins_trains;     /* and it arrives as one */
    bool keeps_tos;        /* class and ECN arrive as they were sent */
    uint32_t receive_room; /* bytes that the kernel keeps when we ask for `wanted` */
};

/* Tries with sockets on `address`, "127.0.0.1" or "::1". */
void gw_probe_run(const char *address, uint32_t wanted, struct gw_probe *probe);

#endif
