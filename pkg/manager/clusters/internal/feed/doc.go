// Package feed watches one worker cluster through a link, and passes on what the manager keeps of
// it.
//
//	list, watch ─> intake ─> fanOut ─┬─> mirrorStore: packed Jobs
//	                                 └─> placement.Store, podtimes.Store
//	polls ─> autoscalerReader ─> placement.Observed
//
// One goroutine calls Run again and again. Run starts the informer of the mirrors once the worker
// has answered, and the others as spec.capacity says. Stores of volumes and namespaces are filled
// from the first Job on that needs them (see onDemand). An informer outlives the loss of the
// worker: its requests wait in the link, and then go on.
//
// Readiness says whether the worker can be used: it answers, and its mirrors are known. A worker
// that answers probes is Disconnected all the same if its mirrors can't be watched for three probe
// intervals, or if they take too long to be listed (see listing). State says what is known of the
// worker's capacity. Free and Room make of it what one Job is judged by.
//
// # Bounds
//
// An intake slims each object, and counts what is held, in objects and bytes: a worker can't fill
// the manager's memory. An object whose name no API server stores is counted, and not kept: whoever
// reads what the feed keeps needn't check names.
//
// Lists are read in pages, and slimmed page by page (see listAll). A list is bounded as a whole,
// too: it has each object once, few objects that aren't held, and an end in time. Too many mirrors
// make a worker not Ready. Too many objects of another kind leave that kind unknown, and State says
// so.
//
// The bounds of a worker's objects, in number and memory:
//
//	mirrors, by default                                     25,000         97 MiB
//	nodes                                                   10,000         32 MiB
//	unfinished Pods                                         50,000         96 MiB
//	times of Pods of Jobs                                  150,000         96 MiB
//	ResourceQuotas, LimitRanges                             10,000 each    32 MiB each
//	PriorityClasses, RuntimeClasses                          1,000 each     4 MiB each
//	with devices: DeviceClasses                              1,000          4 MiB
//	              ResourceSlices, ResourceClaims            20,000 each    64, 32 MiB
//	              ResourceClaimTemplates                     5,000          8 MiB
//	from the first Job on that needs them:
//	  namespaces                                            20,000         24 MiB
//	from the first Job with claims on:
//	  PersistentVolumeClaims, PersistentVolumes             20,000 each    48 MiB each
//	  CSIStorageCapacities; CSINodes                        20,000; 10,000 24, 16 MiB
//	  StorageClasses, CSIDrivers                             1,000 each     4 MiB each
//
// Of mirrors, it holds a quarter more than spec.maxMirrors, which is 20,000 by default, and 5 KiB
// for each of maxMirrors, at least 32 MiB.
//
// Of a CSINode, it holds 64 drivers: further ones aren't known to be on the node, nor what they
// attach at most.
//
// It doesn't hold the Pod template of mirrors with a template of more than 64 KiB, and of further
// ones when half of the memory is used. For these no change of the template is reported (Drift),
// and the mirror is created again if the hub changes the template of a suspended Job.
package feed
