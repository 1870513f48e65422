package devices

import (
	"cmp"
	"crypto/sha256"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
)

// inventory has a worker's slices by node. Immutable.
type inventory struct {
	// published are the slices as the worker has them.
	published []*resourcev1.ResourceSlice
	// nodes have the pools that one node alone reaches, by its name.
	nodes map[string]*nodeDevices
	// shared are the slices of all other pools.
	shared []*resourcev1.ResourceSlice
	// completed are the slices whose pool is taken for complete, with what the worker has.
	completed map[*resourcev1.ResourceSlice]*resourcev1.ResourceSlice
	// selecting is what the selectors of nodes have of a slice and its devices, where they have
	// much.
	selecting map[*resourcev1.ResourceSlice]int
	// contents of slices, as far as they're known.
	contents map[*resourcev1.ResourceSlice]digest
}

// digest is equal for things that are.
type digest [sha256.Size]byte

// nodeDevices are the pools of one node.
type nodeDevices struct {
	slices []*resourcev1.ResourceSlice
	pools  []pool
	// content is equal for nodes whose slices differ in the names of nodes and pools only.
	content digest
}

type pool struct{ driver, name string }

func poolOf(s *resourcev1.ResourceSlice) pool { return pool{s.Spec.Driver, s.Spec.Pool.Name} }

func (p pool) compare(o pool) int {
	return cmp.Or(cmp.Compare(p.driver, o.driver), cmp.Compare(p.name, o.name))
}

// newInventory reads slices, of which some may be those of the inventory before.
func newInventory(published []*resourcev1.ResourceSlice, minor int, before *inventory) *inventory {
	inv := &inventory{
		published: published, nodes: map[string]*nodeDevices{}, contents: make(map[*resourcev1.ResourceSlice]digest, len(published)),
		selecting: map[*resourcev1.ResourceSlice]int{},
	}
	all := slices.DeleteFunc(slices.Clone(published), func(s *resourcev1.ResourceSlice) bool { return !isStored(s) })
	if minor < completeSince {
		all, inv.completed = completed(all)
	}
	owners := ownersOf(all)
	for _, s := range all {
		if size := selectingOf(s); size >= selectedPerWork {
			inv.selecting[s] = size
		}
		node := owners[poolOf(s)]
		if node == "" {
			inv.shared = append(inv.shared, s)
			continue
		}
		n := inv.nodes[node]
		if n == nil {
			n = &nodeDevices{}
			inv.nodes[node] = n
		}
		n.slices = append(n.slices, s)
	}
	for _, n := range inv.nodes {
		n.read(func(s *resourcev1.ResourceSlice) digest {
			content, known := before.contents[s]
			if !known {
				content = contentOf(inv.asPublished(s))
			}
			inv.contents[s] = content
			return content
		})
	}
	return inv
}

// selectingOf a slice is how much it takes to read its selectors of nodes.
func selectingOf(s *resourcev1.ResourceSlice) int {
	size := sizeOf(s.Spec.NodeSelector)
	for i := range s.Spec.Devices {
		size += sizeOf(s.Spec.Devices[i].NodeSelector)
	}
	return size
}

// readWork is how much work it is to read some slices: their selectors of nodes, and each device
// with an evaluation of the selectors of devices.
func (inv *inventory) readWork(near []*resourcev1.ResourceSlice, evaluation int) int {
	work := 0
	for _, s := range near {
		work += (1+len(s.Spec.Devices))*(deviceWork+evaluation) + inv.selecting[s]/selectedPerWork
	}
	return work
}

// ownersOf pools are the nodes that alone reach them; empty where several may.
func ownersOf(all []*resourcev1.ResourceSlice) map[pool]string {
	owners := map[pool]string{}
	for _, s := range all {
		owner, known := owners[poolOf(s)]
		if node := nodeOf(s); !known || owner == node {
			owners[poolOf(s)] = node
		} else {
			owners[poolOf(s)] = ""
		}
	}
	return owners
}

// read takes the slices for final.
func (n *nodeDevices) read(contentOf func(*resourcev1.ResourceSlice) digest) {
	for _, s := range n.slices {
		n.pools = append(n.pools, poolOf(s))
	}
	slices.SortFunc(n.pools, pool.compare)
	n.pools = slices.Compact(n.pools)
	hash := sha256.New()
	for _, s := range n.slices {
		ordinal, _ := slices.BinarySearchFunc(n.pools, poolOf(s), pool.compare)
		content := contentOf(s)
		hash.Write([]byte{byte(ordinal), byte(ordinal >> 8), byte(ordinal >> 16)})
		hash.Write(content[:])
	}
	hash.Sum(n.content[:0])
}

// contentOf a slice, but for the names of its node and pool.
func contentOf(s *resourcev1.ResourceSlice) digest {
	spec := s.Spec
	spec.NodeName, spec.Pool.Name = nil, ""
	packed, err := (&resourcev1.ResourceSlice{Spec: spec}).Marshal()
	if err != nil { // it never fails
		packed = []byte(s.Name)
	}
	return sha256.Sum256(packed)
}

// near a node are the slices that it may reach.
func (inv *inventory) near(node string) []*resourcev1.ResourceSlice {
	n := inv.nodes[node]
	switch {
	case n == nil:
		return inv.shared
	case len(inv.shared) == 0:
		return n.slices
	default:
		return slices.Concat(n.slices, inv.shared)
	}
}

// completeSince is the first release that allocates no device of a pool that is being published.
const completeSince = 35

// completed pools consist of the slices that are there. It returns what it changed, too.
func completed(all []*resourcev1.ResourceSlice) (complete []*resourcev1.ResourceSlice, changed map[*resourcev1.ResourceSlice]*resourcev1.ResourceSlice) {
	type generation struct {
		pool
		number int64
	}
	of := func(s *resourcev1.ResourceSlice) generation { return generation{poolOf(s), s.Spec.Pool.Generation} }
	counts := map[generation]int64{}
	for _, s := range all {
		counts[of(s)]++
	}
	complete, changed = slices.Clone(all), map[*resourcev1.ResourceSlice]*resourcev1.ResourceSlice{}
	for i, s := range all {
		if count := counts[of(s)]; s.Spec.Pool.ResourceSliceCount != count {
			c := *s // the devices are shared
			c.Spec.Pool.ResourceSliceCount = count
			complete[i] = &c
			changed[complete[i]] = s
		}
	}
	return complete, changed
}

// asPublished is a slice as the worker has it.
func (inv *inventory) asPublished(s *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
	if published := inv.completed[s]; published != nil {
		return published
	}
	return s
}

// asAllocated are the slices for some claims. With one for all devices, older releases, too, wait
// for pools that are being published.
func (inv *inventory) asAllocated(near []*resourcev1.ResourceSlice, all bool) []*resourcev1.ResourceSlice {
	if !all || len(inv.completed) == 0 {
		return near
	}
	published := make([]*resourcev1.ResourceSlice, len(near))
	for i, s := range near {
		published[i] = inv.asPublished(s)
	}
	return published
}

// wantsAll reports whether some request is for all devices.
func wantsAll(spec *resourcev1.ResourceClaimSpec) bool {
	return slices.ContainsFunc(spec.Devices.Requests, func(r resourcev1.DeviceRequest) bool {
		return r.Exactly != nil && r.Exactly.AllocationMode == resourcev1.DeviceAllocationModeAll ||
			slices.ContainsFunc(r.FirstAvailable, func(s resourcev1.DeviceSubRequest) bool {
				return s.AllocationMode == resourcev1.DeviceAllocationModeAll
			})
	})
}
