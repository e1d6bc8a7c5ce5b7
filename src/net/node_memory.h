/*
 * The memory that the nodes of one process share, and memory for nodes.
 */
#ifndef GW_NET_NODE_MEMORY_H
#define GW_NET_NODE_MEMORY_H

#include "core/allocator.h"
#include "core/pkt.h"

/* Packets and payload buffers of one process. */
struct gw_node_memory {
    struct gw_pkt_pool pool;
    struct gw_buf_pool bufs;
};

/* Memory for so many packets and as many buffers of `size` bytes; the system gives pages of it when
 * they are used first. Returns 0 or GW_ERR_NO_MEMORY. */
int gw_node_memory_open(struct gw_node_memory *memory, uint32_t packets, uint32_t size);
void gw_node_memory_close(struct gw_node_memory *memory);

/* Zeroed memory of a node, aligned as nodes want it; where no other has been before, the system
 * gives pages of it when they are used first. NULL: there is none. */
void *gw_node_memory_take(size_t size);

/* The same for what every packet touches in no order of addresses: in large pages, where the system
 * has them. */
void *gw_node_memory_take_large(size_t size);

/* Releases either; NULL is allowed. */
void gw_node_memory_give(void *memory);

/* Both for a node that asks for memory as it goes. */
struct gw_allocator gw_node_memory_allocator(void);

#endif
