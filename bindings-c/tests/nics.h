/* NICs on the loopback interface, of which one goes to another, that outlast a machine that leaves the program alone for long. */
#ifndef NICS_H
#define NICS_H

#include "check.h"

/* One plane; with `background` it has a thread, and listens. Faults: NULL for none. */
mr_nic *nic_make(uint8_t background, const char *faults);
/* From a NIC without a thread to one that has one. */
void nic_connected(mr_nic *from, mr_nic *to, uint32_t *outgoing, uint32_t *incoming);

#endif
