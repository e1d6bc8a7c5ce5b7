/* A ring between one producing and one consuming thread. */
#ifndef GW_LIB_SPSC_H
#define GW_LIB_SPSC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    GW_SPSC_CELLS = 128, /* a power of two */
    GW_SPSC_CELL_SIZE = 88,
};

struct gw_spsc {
    _Alignas(64) atomic_uint head; /* consumed */
    _Alignas(64) atomic_uint tail; /* produced */
    unsigned char cells[GW_SPSC_CELLS][GW_SPSC_CELL_SIZE];
};

/* False: the ring is full. */
static inline bool gw_spsc_push(struct gw_spsc *ring, const void *item, size_t size)
{
    unsigned tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (tail - atomic_load_explicit(&ring->head, memory_order_acquire) == GW_SPSC_CELLS)
        return false;
    memcpy(ring->cells[tail % GW_SPSC_CELLS], item, size);
    atomic_store(&ring->tail, tail + 1); /* before it looks whether the other side sleeps */
    return true;
}

/* False: the ring is empty. */
static inline bool gw_spsc_pop(struct gw_spsc *ring, void *item, size_t size)
{
    unsigned head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    if (head == atomic_load_explicit(&ring->tail, memory_order_acquire))
        return false;
    memcpy(item, ring->cells[head % GW_SPSC_CELLS], size);
    atomic_store_explicit(&ring->head, head + 1, memory_order_release);
    return true;
}

/* By either side; what the other one does meanwhile may not be seen. */
static inline bool gw_spsc_is_empty(const struct gw_spsc *ring)
{
    return atomic_load(&ring->head) == atomic_load(&ring->tail);
}

#endif
