/*
 * Doubly linked lists of elements of one array, linked by index, so that a link takes as few bits
 * as the array needs.
 *
 * A list is circular. Its head is an element of the array as well, behind those that can be on it,
 * and is named by its index; several lists may share the array, and an element is on one at most.
 *
 * GW_INDEX_LIST(prefix, type) defines prefix_init, _is_empty, _append, _push, _remove and _first
 * for elements of `type`, which has the members `prev` and `next`; they may be bit-fields. Removing
 * needs no head. The links of an element that is on no list mean nothing.
 */
#ifndef GW_BASE_INDEX_LIST_H
#define GW_BASE_INDEX_LIST_H

#include <stdbool.h>
#include <stdint.h>

#define GW_INDEX_LIST(prefix, type)                                                                \
    /* Makes the list empty. */                                                                    \
    static inline void prefix##_init(type *elements, uint32_t head)                                \
    {                                                                                              \
        elements[head].prev = elements[head].next = head;                                          \
    }                                                                                              \
    /* The oldest element of a list, or its head when it is empty. */                              \
    static inline uint32_t prefix##_first(const type *elements, uint32_t head)                     \
    {                                                                                              \
        return elements[head].next;                                                                \
    }                                                                                              \
    static inline bool prefix##_is_empty(const type *elements, uint32_t head)                      \
    {                                                                                              \
        return elements[head].next == head;                                                        \
    }                                                                                              \
    /* Puts an element before `place`: at the end of the list if that is the head. */              \
    static inline void prefix##_append(type *elements, uint32_t place, uint32_t at)                \
    {                                                                                              \
        uint32_t before = elements[place].prev;                                                    \
        elements[at].prev = before;                                                                \
        elements[at].next = place;                                                                 \
        elements[before].next = at;                                                                \
        elements[place].prev = at;                                                                 \
    }                                                                                              \
    /* Puts an element first. */                                                                   \
    static inline void prefix##_push(type *elements, uint32_t head, uint32_t at)                   \
    {                                                                                              \
        prefix##_append(elements, elements[head].next, at);                                        \
    }                                                                                              \
    static inline void prefix##_remove(type *elements, uint32_t at)                                \
    {                                                                                              \
        elements[elements[at].prev].next = elements[at].next;                                      \
        elements[elements[at].next].prev = elements[at].prev;                                      \
    }

#endif
