// Package scheduling answers for one worker what its kube-scheduler would do with the Pods of one
// Job. It is pure: values in, an Answer out.
//
//	events of Pods ──> Pods ──┐
//	capacity.Capacity ────────┴> Snapshot ─────────────┐              Answer: FitsNow, FitsAfterScaleUp,
//	                                                   ├──> Judge ──> FitsLater or Never, with the scheduler's
//	Job: its Pods, which are all alike, and how many ──┘              own reasons
//
// # Three views of a worker
//
//   - now: the nodes and Pods as they are.
//   - idle: every Pod that ends by itself has ended. Pods of restartPolicy Always don't. Nor does,
//     if more Pods fit then, one of those on each node that the Job must be near.
//   - ever: besides, cordoned and troubled nodes are back, and a Pod that ends by itself may still
//     be there, wherever that helps. What doesn't fit in this view never fits on these nodes.
//
// A Job fits now if all Pods that it wants at once fit in the view now, or as many as fit in the
// view idle, if those are fewer: a Job that is wider than the worker waits for an idle worker, and
// not forever.
//
// The Pods of a gang must all fit at once: a worker that can't hold it never fits.
//
// # Plugins
//
// The table in plugins.go has a row for each of the scheduler's filter plugins. Whether a node
// suits the Job, whatever runs there, is answered by capacity.Shape, for reservations, too:
// suiting.go has the words of those plugins. Each of the others is a file of its name.
// A plugin reads what it needs once per Job and view. Then it checks nodes. Most plugins look at a
// node alone: the number of Pods is then the sum over nodes. The plugins that couple (topology
// spread, affinity between Pods) take note of each Pod of the Job that is put on a node, and the
// Pods are tried one after the other, in groups of nodes that are alike for these plugins: those of
// the same topology domains. Selectors look at each kind of Pod once: what Pods with the same
// namespace, labels and anti-affinity have in common. Labels that name one Job or Pod aren't part
// of it, and are read Pod by Pod.
//
// Where the order of nodes decides how many Pods fit, the smallest number counts: the scheduler
// breaks ties at random. So Answer.Now is what fits in any case.
//
// Before, the API server admits the Pods: PriorityClass, LimitRange, RuntimeClass and ResourceQuota
// are applied to the Job, and may bound the number of its Pods. Devices are allocated by
// Kubernetes' own allocator, through the interface Devices; package devices has it.
//
// With Snapshot.Preemption, a Job that doesn't fit is judged once more with what the Pods of a
// lower priority take free. Where it fits then, the scheduler makes room for it.
//
// With Snapshot.Autoscaling, a Job of which not all Pods fit now is judged once more with the nodes
// that package autoscaling makes up for it, beside those that there are. A worker that can add
// nodes is idle when all of these are there: a Job wider than its nodes waits for them.
//
// # Groups
//
// A Group is judged as one: a Job and its mates, which are other Jobs whose Pods must fit at the
// same time. Each member is judged by itself first. The group never fits only if a member doesn't
// by itself. Then it's counted how many Pods of a member fit wherever all Pods of the others, its
// rivals, are, and in whatever order the scheduler takes them:
//
//	slots of the nodes for the member - the most that the rivals' Pods can take of these
//
// How many slots Pods take of a node is a sum over requests, rounded up. rivals.go bounds it by a
// part for each Pod and, in one of two ways, a part for the node, whatever other Pods are there. So
// the nodes on which a rival's Pods take most can be chosen for each rival by itself. What a node
// has to spare beside the slots that are wanted isn't missed. Besides, a rival's Pod takes
//
//   - the whole node, if both hold one host port, if both have devices, or volumes that are yet
//     to be bound, or volumes of a driver that limits them;
//   - a domain, by anti-affinity of either to the other, or by a constraint of topology spread that
//     selects the rival's Pods and not the member's own;
//   - one Pod more, by a constraint that selects both.
//
// What rivals take is shared between all domains of anti-affinity or topology spread, or each loses
// all that they can take of it alone: the better of both bounds counts, so that what a domain has
// beside the Pods that may be there isn't missed. In either, the domain with the fewest Pods loses
// all: the proof of anyorder.go holds for what is left. Where the first of several Pods decides in
// which domain all will be, the domain with the least room counts. A Job's affinity to Pods of a
// mate is taken for met by its own first Pod, in each domain in which a mate's Pod may be, unless
// all these mates wait for others in turn. If a member and a rival keep apart in these domains,
// there must be more of them than rivals take. Where none of that is known, the Pods are tried one
// after the other on what the rivals leave of each node if all are there. Volumes or devices that
// couple nodes leave nothing, if a rival has such, too.
//
// Each member needs as many Pods at once as the same count says of the idle worker. If that is too
// few even for one Pod, or for a gang, the rivals could take all, and the member is Contended: then
// it needs what it would alone, and all slots that its nodes have in the idle worker. So a group
// that is wider than the worker, or whose Pods could be in each other's way, waits for an idle
// worker and not forever. There it's placed, even if not all of it may run at once.
//
// The quotas of the Job's namespace must leave room for the sum of all Pods. Those of other
// namespaces aren't known. A group preempts others if all its members may, and have one priority.
// It fits after scale-up if each member does by itself, and nodes can be added for each that has
// too little room: which nodes they share isn't looked at. A group that takes too much work is
// judged as if each member were alone.
//
// # Bounds
//
// Users write Jobs, and workers say what they have: neither may make an answer expensive. A field
// of a Job that has too much for any worker is left out (capacity.Judged). Each judgement has a
// budget of mostWork: reading the Job's selectors is spent from it, and whatever of the Job is
// compared with nodes, Pods, volumes or mates. When it is used up, the Job is judged once more
// without the field that this was for, and then by its requests alone. Answer.Unjudged says so. The
// clock is looked at in between, as the last resort. Devices count their own work, as what is found
// out of them is kept from one Job to the next.
//
// Of a Pod, maxTerms terms of each sort are judged; of the kinds of Pods that keep others away,
// maxGuards, each up to maxGuardWeight; and Pods beyond maxSteps are taken to fit where there are
// slots. All err towards a Job that fits.
//
// # What may be wrong
//
//   - FitsLater is an upper bound. It may need that some Pods end and others don't.
//   - Pods of a Job are taken for alike: selectors over the completion index aren't told apart.
//   - A volume that is made for a claim of all Pods can be used wherever its class allows it. A
//     driver may make it for one zone, or one node.
//   - Storage that a driver publishes as free counts for each Pod by itself, as for the scheduler.
//     So more Pods may be bound than there is storage for.
//   - What claims take of quotas that aren't made for a Pod is taken to be given back some day.
//   - Not modelled: VolumeAttachments without a Pod, volumes of in-tree drivers that a node has
//     once only, quotas of the class that is the default for a claim, of VolumeAttributesClasses,
//     and of devices that the scheduler claims for extended resources, scheduling gates of the
//     Job's Pods (they are taken for removed).
//   - A group that fits after scale-up may need more nodes than the autoscaler may add for all its
//     members together.
//
// The judge, e2e/placement, compares the answers with those of the real kube-scheduler.
package scheduling
