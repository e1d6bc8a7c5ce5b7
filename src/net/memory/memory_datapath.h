/*
 * The memory datapath (datapath.h): stations that are threads of one process exchange datagrams
 * without sockets. What they say is encoded, authenticated, checked and decoded as over UDP, and
 * the bytes are copied once, from the sender's buffers to the receiver's inbox.
 *
 * Addresses look like those of IP and mean nothing outside the process: a station has a host and a
 * row of ports, as `address`, `port` and `entropies` say. At the wildcard it has every host, and
 * what it sends comes from the one that it is sent to. Hosts that differ are as near as any.
 *
 * Nothing waits for room: a full inbox drops, which its owner counts as kernel_drops. Nobody hears
 * multicast groups. Kernel buffers, trains of the kernel and IPv4 options do not exist here: of
 * these options of struct gw_datapath_cfg only buffer_bytes means something, the inbox's size.
 */
#ifndef GW_NET_MEMORY_DATAPATH_H
#define GW_NET_MEMORY_DATAPATH_H

#include "net/datapath.h"

extern const struct gw_datapath_ops gw_datapath_memory;

#endif
