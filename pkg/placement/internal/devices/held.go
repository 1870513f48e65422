package devices

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"slices"
	"sync/atomic"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// held are the devices that claims hold, by pool. Administrators' access doesn't hold a device.
type held map[pool][]*resourcev1.DeviceRequestAllocationResult

// holding is what is held in one view.
type holding struct {
	held
	// alike numbers the nodes that have devices of their own: equal ones are alike, free devices
	// included.
	alike map[string]int32
	// all is the state of what is held in all pools; nil: nobody has asked for it.
	all atomic.Pointer[structured.AllocatedState]
}

// hold reads all claims; in an idle worker, those of Pods that last. The bound of their memory, in
// package feed, allows less than 60,000 devices: to read them takes some 50 ms.
func (d *Devices) hold(idle bool) *holding {
	h := held{}
	for _, claim := range d.objects.Claims {
		if claim.Status.Allocation == nil || idle && !d.lasts(claim) {
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			if result := &claim.Status.Allocation.Devices.Results[i]; !ptr.Deref(result.AdminAccess, false) {
				of := pool{result.Driver, result.Pool}
				h[of] = append(h[of], result)
			}
		}
	}
	alike := make(map[string]int32, len(d.inventory.nodes))
	for name, n := range d.inventory.nodes {
		alike[name] = d.memo.number(n.digest(h))
	}
	return &holding{held: h, alike: alike}
}

// without some claims. Only the nodes that they had devices of are looked at again.
func (h *holding) without(gone []*resourcev1.ResourceClaim, d *Devices) *holding {
	results, asked, changed := map[*resourcev1.DeviceRequestAllocationResult]bool{}, map[pool]bool{}, map[pool]bool{}
	for _, claim := range gone {
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			results[result], asked[pool{result.Driver, result.Pool}] = true, true
		}
	}
	left := maps.Clone(h.held)
	for of := range asked {
		rest := slices.DeleteFunc(slices.Clone(left[of]), func(r *resourcev1.DeviceRequestAllocationResult) bool { return results[r] })
		changed[of] = len(rest) < len(left[of])
		left[of] = rest
	}
	alike := maps.Clone(h.alike)
	for name, n := range d.inventory.nodes {
		if slices.ContainsFunc(n.pools, func(p pool) bool { return changed[p] }) {
			alike[name] = d.memo.number(n.digest(left))
		}
	}
	return &holding{held: left, alike: alike}
}

// lasts reports whether a Pod that doesn't end has the claim reserved.
func (d *Devices) lasts(claim *resourcev1.ResourceClaim) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
		return r.Resource != "pods" || d.objects.Lasts(r.UID)
	})
}

// results counts them.
func (h held) results() (count int) {
	for _, results := range h {
		count += len(results)
	}
	return count
}

// of some pools only.
func (h held) of(pools []pool) held {
	some := held{}
	for _, p := range pools {
		if results := h[p]; len(results) > 0 {
			some[p] = results
		}
	}
	return some
}

// digest is equal for nodes of one content whose devices are held alike.
func (n *nodeDevices) digest(h held) digest {
	var found [][]byte
	for ordinal, of := range n.pools {
		for _, r := range h[of] {
			found = append(found, append(contentOfHeld(r), byte(ordinal), byte(ordinal>>8), byte(ordinal>>16)))
		}
	}
	if len(found) == 0 {
		return n.content
	}
	slices.SortFunc(found, bytes.Compare)
	hash := sha256.New()
	hash.Write(n.content[:])
	for _, packed := range found {
		one := sha256.Sum256(packed)
		hash.Write(one[:])
	}
	var sum digest
	hash.Sum(sum[:0])
	return sum
}

// contentOfHeld tells which device is held, whether others may share it, and how much of it is
// taken.
func contentOfHeld(r *resourcev1.DeviceRequestAllocationResult) []byte {
	content := resourcev1.DeviceRequestAllocationResult{Device: r.Device, Driver: r.Driver, ConsumedCapacity: r.ConsumedCapacity}
	if r.ShareID != nil {
		content.ShareID = ptr.To(types.UID(""))
	}
	packed, err := content.Marshal()
	if err != nil { // it never fails
		packed = []byte(r.Device)
	}
	return packed
}

// state is what the allocator reads of devices that are held.
func (d *Devices) state(h held) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, results := range h {
		for _, result := range results {
			d.take(&state, result)
		}
	}
	return state
}

// take marks a device of an allocation.
func (d *Devices) take(state *structured.AllocatedState, result *resourcev1.DeviceRequestAllocationResult) {
	if ptr.Deref(result.AdminAccess, false) {
		return
	}
	id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
	if !d.features.ConsumableCapacity || result.ShareID == nil {
		state.AllocatedDevices.Insert(id)
		return
	}
	state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
	if result.ConsumedCapacity != nil {
		state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
	}
}
