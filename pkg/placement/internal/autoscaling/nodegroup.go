package autoscaling

import (
	"errors"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of what is read of a worker's cluster-autoscaler.
const (
	// MaxGroups bounds the node groups, maxStatusBytes the text, and maxStatusMarks the characters in
	// it that may begin a value: 500 groups have some 50,000.
	MaxGroups      = 500
	maxStatusBytes = 512 << 10
	maxStatusMarks = 100_000
	// maxFields bounds what is looked at of a mapping; cluster-autoscaler writes fewer than ten
	// fields.
	maxFields = 50
)

// NodeGroup is one of cluster-autoscaler's, as a worker says.
type NodeGroup struct {
	MaxNodes int64
	// Backoff: no nodes are added for a while, because that has just failed.
	Backoff bool
}

// errNoStatus is returned for what cluster-autoscaler doesn't write.
var errNoStatus = errors.New("the status is too long, or has aliases")

// ReadNodeGroups reads the status that cluster-autoscaler writes (YAML, from release 1.30 on), by
// the names of the node groups. Of a path, such as that of a managed instance group, the name is
// the last part.
//
// The text is parsed and not decoded: yaml's decoder compares all pairs of a mapping's keys, and
// follows aliases, so that a few bytes of a worker would take gigabytes and minutes.
func ReadNodeGroups(status string) (map[string]NodeGroup, error) {
	if len(status) > maxStatusBytes || marks(status) > maxStatusMarks {
		return nil, errNoStatus
	}
	var whole yaml.Node
	if err := yaml.Unmarshal([]byte(status), &whole); err != nil {
		return nil, err
	}
	if hasAlias(&whole) {
		return nil, errNoStatus
	}
	if len(whole.Content) == 0 || whole.Content[0].Kind != yaml.MappingNode {
		return nil, errNoStatus
	}
	groups := map[string]NodeGroup{}
	list := field(whole.Content[0], "nodeGroups")
	if list == nil || list.Kind != yaml.SequenceNode {
		return groups, nil
	}
	for _, g := range list.Content[:min(len(list.Content), MaxGroups)] {
		name, status := value(g, "name"), value(g, "scaleUp", "status")
		most, err := strconv.ParseInt(value(g, "health", "maxSize"), 10, 64)
		if err != nil {
			most = 0
		}
		groups[name[strings.LastIndex(name, "/")+1:]] = NodeGroup{MaxNodes: max(min(most, maxPoolNodes), 0), Backoff: status == "Backoff"}
	}
	return groups, nil
}

// marks counts what may begin a value: the parser takes some 300 bytes for each.
func marks(status string) (n int) {
	for i := range len(status) {
		switch status[i] {
		case '\n', '\r', ',', ':', '[', '{', '?', '-':
			n++
		}
	}
	return n
}

// field is the value of a mapping's key; nil: there is none.
func field(mapping *yaml.Node, key string) *yaml.Node {
	if mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < min(len(mapping.Content), 2*maxFields); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// value is the text below some keys; empty: there is none.
func value(node *yaml.Node, keys ...string) string {
	for _, key := range keys {
		if node = field(node, key); node == nil {
			return ""
		}
	}
	return node.Value
}

// hasAlias reports whether a text stands for a longer one: of a few aliases, gigabytes can become.
func hasAlias(node *yaml.Node) bool {
	if node.Kind == yaml.AliasNode {
		return true
	}
	for _, part := range node.Content {
		if hasAlias(part) {
			return true
		}
	}
	return false
}
