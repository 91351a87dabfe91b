/* Several completion queues of a NIC: each completion comes to the queue of its stream and kind, wakes only that queue's descriptor, and is in no
 * other; those of work that is flushed as well. */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <string.h>

#include "nics.h"

enum { NIC, FIRST, SECOND, QUEUES };

static uint8_t bytes[2][4096];
static mr_nic *nics[2];
static mr_region regions[2];
static uint32_t connections[2];

static void send(unsigned side, uint16_t stream, uint64_t id)
{
    mr_work work;
    memset(&work, 0, sizeof work);
    work.id = id;
    work.operation = MR_SEND;
    work.local.region = regions[side].index;
    work.local.length = 100;
    EXPECT(MR_OK, mr_nic_post(nics[side], connections[side], stream, &work));
}

static void receive(unsigned side, uint16_t stream, uint64_t id)
{
    mr_receive buffer;
    memset(&buffer, 0, sizeof buffer);
    buffer.id = id;
    buffer.local.region = regions[side].index;
    buffer.local.offset = 1000;
    buffer.local.length = 100;
    EXPECT(MR_OK, mr_nic_post_receive(nics[side], connections[side], stream, &buffer));
}

/* The next completion of side 0 is this one, in this queue; it alone wakes, and nothing is in the others. */
static void comes(uint32_t queue, uint64_t id, uint8_t kind, uint8_t status)
{
    mr_completion completion, none;
    struct pollfd watched;
    EXPECT(MR_OK, mr_nic_wait(nics[0], queue, MR_FOREVER, &completion));
    CHECK(completion.id == id && completion.kind == kind && completion.status == status);
    watched.events = POLLIN;
    for (uint32_t other = 0; other < QUEUES; other++) {
        watched.fd = mr_nic_queue_descriptor(nics[0], other);
        CHECK(poll(&watched, 1, 0) == (other == queue));
        EXPECT(0, mr_nic_poll(nics[0], other, &none, 1));
    }
    EXPECT(MR_OK, mr_nic_disarm(nics[0], queue));
    EXPECT(1, mr_nic_arm(nics[0], queue, 0));
}

static void refusals(void)
{
    mr_completion completion;
    EXPECT(MR_ERROR_BAD_ARGUMENT, mr_nic_poll(nics[0], QUEUES, &completion, 1));
    EXPECT(MR_ERROR_BAD_ARGUMENT, mr_nic_wait(nics[0], QUEUES, 0, &completion));
    EXPECT(MR_ERROR_BAD_ARGUMENT, mr_nic_arm(nics[0], UINT32_MAX, 0));
    EXPECT(MR_ERROR_BAD_ARGUMENT, mr_nic_disarm(nics[0], QUEUES));
    EXPECT(MR_ERROR_BAD_ARGUMENT, mr_nic_queue_descriptor(nics[0], QUEUES));
    EXPECT(MR_ERROR_BAD_ARGUMENT, mr_nic_set_queues(nics[0], connections[0], FIRST, QUEUES));
    EXPECT(MR_ERROR_BAD_ARGUMENT, mr_nic_set_stream_queues(nics[0], connections[0], 1, QUEUES, FIRST));
    EXPECT(MR_ERROR_UNKNOWN_CONNECTION, mr_nic_set_queues(nics[0], connections[0] + 7, FIRST, FIRST));
    EXPECT(MR_ERROR_TIMED_OUT, mr_nic_wait(nics[0], SECOND, 0, &completion));
}

int main(void)
{
    nics[0] = nic_make(0, NULL);
    nics[1] = nic_make(1, NULL);
    for (unsigned side = 0; side < 2; side++)
        EXPECT(MR_OK, mr_nic_register(nics[side], bytes[side], sizeof bytes[side], MR_ACCESS_LOCAL_WRITE,
                                      &regions[side]));
    EXPECT(FIRST, mr_nic_create_queue(nics[0]));
    EXPECT(SECOND, mr_nic_create_queue(nics[0]));
    nic_connected(nics[0], nics[1], &connections[0], &connections[1]);
    refusals();
    for (uint32_t queue = 0; queue < QUEUES; queue++)
        EXPECT(1, mr_nic_arm(nics[0], queue, 0));
    for (uint16_t stream = 0; stream < 2; stream++)
        for (unsigned i = 0; i < 4; i++)
            receive(1, stream, i);

    /* Queue 0, until it is said otherwise; for one stream apart. */
    send(0, 0, 1);
    comes(NIC, 1, MR_COMPLETION_SEND, MR_STATUS_SUCCESS);
    EXPECT(MR_OK, mr_nic_set_queues(nics[0], connections[0], FIRST, SECOND));
    EXPECT(MR_OK, mr_nic_set_stream_queues(nics[0], connections[0], 1, SECOND, NIC));
    send(0, 0, 2);
    comes(FIRST, 2, MR_COMPLETION_SEND, MR_STATUS_SUCCESS);
    send(0, 1, 3);
    comes(SECOND, 3, MR_COMPLETION_SEND, MR_STATUS_SUCCESS);
    receive(0, 0, 4);
    send(1, 0, 0);
    comes(SECOND, 4, MR_COMPLETION_RECEIVE, MR_STATUS_SUCCESS);
    receive(0, 1, 5);
    send(1, 1, 0);
    comes(NIC, 5, MR_COMPLETION_RECEIVE, MR_STATUS_SUCCESS);

    /* The end finds them, too. */
    receive(0, 0, 6);
    EXPECT(MR_OK, mr_nic_close(nics[0], connections[0], MR_CLOSE_ABORT, 0));
    comes(SECOND, 6, MR_COMPLETION_RECEIVE, MR_STATUS_FLUSHED);
    mr_nic_free(nics[0], 0);
    mr_nic_free(nics[1], 0);
    printf("nic_queues: three queues, each with its own completions\n");
    return 0;
}
