// Package autoscaling computes what a worker's autoscaler may still add. It is pure: values in,
// made-up nodes out.
//
//	NodeClaims ─> Launches: machines that don't come ────┐
//	NodePools, cluster-autoscaler's status ─┐            │
//	the nodes that there are ───────────────┴─> Update ──┤
//	spec.autoscaling ────────────────────────────────────┴─> GrowthOf: groups of nodes, templates, limits ─┐
//	the nodes that there are ──────────────────────────────────────────────────────────────────────────────┼─> NewRoom ──> Room.Nodes
//	Pods for which no node has room (capacity.Demand) ─────────────────────────────────────────────────────┘
//
// A NodePool doesn't say how large its nodes are, as Karpenter chooses them by catalogues of its
// clouds. Its nodes show it, and what they showed is remembered for as long as the NodePool is
// there.
//
// A Room has the nodes that were asked for already, by Pods that wait there, and knows how many
// more there may be. Nodes adds those that one Job could have besides. So no worker is asked for
// more than its limits, whoever asks.
//
// # When no node comes
//
// Karpenter makes a NodeClaim for a node, and deletes it at once when its cloud has no machine for
// it. It says nothing of that in its NodePools. The NodeClaim's requirements name the instance
// types, zones and capacity types that were tried. No nodes are expected of these for a while (see
// Launches); others of the same NodePool are. So a user whose Pods want what is never there closes
// no NodePool for others. A NodeClaim that has got its machine ends that, if all machines that it
// could become are among these: the manager doesn't see which of them it became.
//
// # What may be wrong
//
// Which of several templates the autoscaler chooses isn't known: for Pods that wait, the first that
// suits is taken, and for a Job, one node of each in turn, until each has as many as the Job needs
// or the limits are reached. So a Job whose Pods must all be in one zone may be said not to fit
// where the limits allow just enough. Made-up nodes have no devices that are claimed, and no
// volumes.
//
// Of a NodeClaim that is limited by something else than a list of values, nobody knows what was
// tried: it counts for nothing. One that isn't selected any more has got its machine. A NodeClaim
// without finalizers, which isn't Karpenter's, looks the same when it's deleted: it ends failures
// of such machines, and the next one tells again.
//
// A template in spec.autoscaling that doesn't name its instance type or zone may be any: it's out
// if any of the NodePool's is.
//
// Of a NodePool's sizes, only those that were seen are expected, in each zone and capacity type
// that it allows. Karpenter's limits count what a node has in all, and here its allocatable counts.
//
// A worker says which groups there are and how large, and any user has Pods wait: neither may make
// an answer expensive. So a worker has at most MaxPools NodePools, MaxGroups node groups,
// maxTemplates templates and maxFailures of NodeClaims, and a Room makes up maxNodes nodes, and
// looks at capacity.MaxDemands shapes of Pods that wait, in maxDemandWork comparisons. More of them
// err towards a Job that fits.
package autoscaling
