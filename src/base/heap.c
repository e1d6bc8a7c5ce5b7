/* Indexed binary heap; see heap.h for the invariant. */
#include "base/heap.h"

#include "base/assert.h"

static bool entry_before(const struct gw_heap_entry *a, const struct gw_heap_entry *b)
{
    return a->deadline == b->deadline ? a->id < b->id : gw_time_before(a->deadline, b->deadline);
}

static void heap_place(struct gw_heap *heap, uint32_t at, struct gw_heap_entry entry)
{
    heap->entries[at] = entry;
    heap->position[entry.id] = at;
}

/* Moves `entry` from the free cell `at` towards the root, then towards the leaves. */
static void heap_settle(struct gw_heap *heap, uint32_t at, struct gw_heap_entry entry)
{
    for (; at > 0 && entry_before(&entry, &heap->entries[(at - 1) / 2]); at = (at - 1) / 2)
        heap_place(heap, at, heap->entries[(at - 1) / 2]);
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count &&
            entry_before(&heap->entries[child + 1], &heap->entries[child]))
            child++;
        if (!entry_before(&heap->entries[child], &entry))
            break;
        heap_place(heap, at, heap->entries[child]);
        at = child;
    }
    heap_place(heap, at, entry);
}

size_t gw_heap_size(uint32_t limit)
{
    return limit * (sizeof(struct gw_heap_entry) + sizeof(uint32_t));
}

void gw_heap_init(struct gw_heap *heap, void *memory, uint32_t limit)
{
    struct gw_heap_entry *entries = memory;
    *heap = (struct gw_heap){
        .entries = entries, .position = (uint32_t *)(entries + limit), .limit = limit};
    for (uint32_t i = 0; i < limit; i++)
        heap->position[i] = GW_HEAP_ABSENT;
}

void gw_heap_set(struct gw_heap *heap, uint32_t id, gw_time deadline)
{
    GW_ASSERT(id < heap->limit);
    uint32_t at = heap->position[id];
    if (deadline != GW_TIME_NEVER) {
        if (at == GW_HEAP_ABSENT)
            at = heap->count++;
        heap_settle(heap, at, (struct gw_heap_entry){.deadline = deadline, .id = id});
    } else if (at != GW_HEAP_ABSENT) {
        heap->position[id] = GW_HEAP_ABSENT;
        struct gw_heap_entry last = heap->entries[--heap->count];
        if (at < heap->count)
            heap_settle(heap, at, last);
    }
}
