// Package feed watches one worker cluster through a link, and passes on what the manager keeps of
// it.
//
//	                       ┌─> mirrors: a cache of packed Jobs
//	list, watch ─> intake ─┤
//	                       └─> fanOut ─> placement.Store, podtimes.Store
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
// the manager's memory. What has names that no API server stores is counted, and else as if it
// weren't there: whoever reads what the feed keeps needn't check names.
//
// Lists are read in pages, and slimmed page by page (see listAll). A list is bounded as a whole,
// too: it has each object once, few objects that aren't held, and an end in time. Too many mirrors
// make a worker not Ready. Too many objects of another kind leave that kind unknown, and State says
// so.
package feed
