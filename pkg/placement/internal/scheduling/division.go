package scheduling

// division of things, such as places, into groups.
type division struct {
	// of is the group of each.
	of     []int32
	groups int
}

func newDivision(things int) *division {
	return &division{of: make([]int32, things), groups: min(things, 1)}
}

// divide takes things apart that are of different domains, in each of the groups that they are in.
// The node of each is the one with its own index, or the one that is given. It returns the work.
func (d *division) divide(t topology, node func(i int) int) int {
	if d.groups == len(d.of) {
		return 0 // all are apart
	}
	// Mostly, there are few enough pairs of a group and a domain, or of one without a domain.
	domains := t.size + 1
	known := pairs{few: make([]int32, min(d.groups*domains, 8*len(d.of)))}
	for i, group := range d.of {
		n := i
		if node != nil {
			n = node(i)
		}
		d.of[i] = known.number(int(group)*domains + int(t.at[n]) + 1)
	}
	d.groups = known.count
	return len(d.of) + newWork*len(known.many)
}

// pairs are numbered in the order in which they come.
type pairs struct {
	// few has the numbers of the first pairs, plus one; many those of the others.
	few   []int32
	many  map[int]int32
	count int
}

func (p *pairs) number(pair int) int32 {
	if pair < len(p.few) {
		if p.few[pair] == 0 {
			p.count++
			p.few[pair] = int32(p.count) //nolint:gosec // not more than nodes
		}
		return p.few[pair] - 1
	}
	number, is := p.many[pair]
	if !is {
		if p.many == nil {
			p.many = map[int]int32{}
		}
		number = int32(p.count) //nolint:gosec // not more than nodes
		p.many[pair] = number
		p.count++
	}
	return number
}
