/* A bounded queue of datagrams; see inbox.h. */
#include "net/memory/inbox.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error.h"

enum {
    ITEMS_MIN = 128, /* two trains */
    ALIGN = _Alignof(struct gw_inbox_item),
};

int gw_inbox_init(struct gw_inbox *inbox, uint32_t size, uint32_t bytes)
{
    size_t stride = (sizeof(struct gw_inbox_item) + size + ALIGN - 1) / ALIGN * ALIGN;
    *inbox = (struct gw_inbox){
        .size = size,
        .stride = stride,
        .items_max = bytes / stride > ITEMS_MIN ? (uint32_t)(bytes / stride) : ITEMS_MIN,
    };
    inbox->items = malloc(inbox->items_max * stride);
    if (!inbox->items)
        return GW_ERR_NO_MEMORY;
    inbox->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (inbox->fd < 0 || pthread_mutex_init(&inbox->lock, NULL) != 0) {
        if (inbox->fd >= 0)
            close(inbox->fd);
        free(inbox->items);
        return GW_ERR_SYSTEM;
    }
    return GW_OK;
}

void gw_inbox_fini(struct gw_inbox *inbox)
{
    close(inbox->fd);
    pthread_mutex_destroy(&inbox->lock);
    free(inbox->items);
}

struct gw_inbox_item *gw_inbox_at(const struct gw_inbox *inbox, uint32_t place)
{
    uint32_t at = inbox->head + place;
    at -= at < inbox->items_max ? 0 : inbox->items_max;
    return (struct gw_inbox_item *)(inbox->items + at * inbox->stride);
}

static void fill(const struct gw_inbox *inbox, struct gw_inbox_item *item,
                 const struct gw_inbox_push *push)
{
    item->from = push->from;
    item->tos = push->tos;
    item->length = 0;
    for (uint32_t i = 0; i < push->piece_count; i++) {
        const struct iovec *piece = &push->pieces[i];
        size_t room = inbox->size - item->length;
        size_t size = piece->iov_len < room ? piece->iov_len : room;
        if (size)
            memcpy(item->bytes + item->length, piece->iov_base, size);
        item->length += (uint32_t)size;
    }
}

void gw_inbox_push(struct gw_inbox *inbox, const struct gw_inbox_push *push)
{
    pthread_mutex_lock(&inbox->lock);
    if (inbox->count == inbox->items_max) {
        inbox->drops++;
    } else {
        fill(inbox, gw_inbox_at(inbox, inbox->count), push);
        inbox->count++;
    }
    if (!inbox->is_signalled)
        inbox->is_signalled = eventfd_write(inbox->fd, 1) == 0;
    pthread_mutex_unlock(&inbox->lock);
}

uint32_t gw_inbox_look(struct gw_inbox *inbox, uint32_t count, uint64_t *drops)
{
    eventfd_t unused;
    pthread_mutex_lock(&inbox->lock);
    GW_ASSERT(count <= inbox->count);
    inbox->count -= count;
    inbox->head = (inbox->head + count) % inbox->items_max;
    if (inbox->count == 0) {
        inbox->head = 0; /* memory that was used last is in the cache */
        if (inbox->is_signalled)
            eventfd_read(inbox->fd, &unused);
        inbox->is_signalled = false;
    }
    *drops = inbox->drops;
    uint32_t waiting = inbox->count;
    pthread_mutex_unlock(&inbox->lock);
    return waiting;
}
