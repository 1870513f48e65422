package scheduling

var otherName = Reason{"NodeName", "node(s) didn't match the requested node name", "spec.template.spec.nodeName"}

func nodeName(j *Job, _ view) filter {
	if j.spec.NodeName == "" {
		return nil
	}
	return func(p *place) *Reason {
		if p.node.Object.Name != j.spec.NodeName {
			return &otherName
		}
		return nil
	}
}
