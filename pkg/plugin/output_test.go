package plugin

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestNothingControlsTheTerminal has a worker send texts that a terminal obeys, in all that is
// printed of them. Programs get JSON and YAML as the worker sent them.
func TestNothingControlsTheTerminal(t *testing.T) {
	for _, message := range []string{"a\x1b[2J\u202e\u00a0b\nc\U000e0041", "a\u009b2J\x7f"} {
		t.Run(strconv.QuoteToASCII(message), func(t *testing.T) { nothingControls(t, message) })
	}
}

func nothingControls(t *testing.T, message string) {
	t.Helper()
	const escape = "shards-\x1b[2J"
	h := newHub(t)
	hostile, malformed := eventIn("west", "Hostile", message), eventIn("west", "Malformed", message)
	hostile.InvolvedObject.Name, malformed.Name = escape, escape
	h.answers[subPath+"events"] = &corev1.EventList{Items: []corev1.Event{hostile, malformed}}
	odd, renamed := pod(0), pod(1)
	odd.Status.Reason, odd.Status.Message, renamed.Name = message, message, escape
	h.answers[subPath+"pods"] = &corev1.PodList{Items: []corev1.Pod{odd, renamed}}
	mirror := hubJob()
	mirror.Status.CompletedIndexes = message
	h.answers[subPath+"mirror"] = mirror
	why := whyWest()
	why.Message, why.Workers[0].Message = message, message
	h.answers[subPath+"why"] = why
	h.answers["/version"] = map[string]string{"gitVersion": message}
	for _, args := range []string{
		"pods shards", "pods shards -o wide", "pods shards -o name", "pods shards -o json", "pods shards -o yaml", "pods shards -o kyaml",
		"pods shards -o jsonpath={.items[*].status.message}", "pods shards -o go-template={{range.items}}{{.status.message}}{{end}}",
		"pods shards -o jsonpath-as-json={.items[*].status.message}",
		"events shards", "events shards -o name", "events shards -o json", "events shards -o yaml", "events shards -o kyaml",
		"describe shards", "why shards", "why shards -o wide", "why shards -o json", "version",
	} {
		got := h.run(strings.Fields(args)...)
		if strings.Contains(got.err, "control characters are not allowed") && strings.HasSuffix(args, "yaml") {
			got = said{out: "refused"} // YAML's own reader refuses some
		}
		if got.code != 0 || got.out == "" {
			t.Errorf("%s: %+v", args, got)
		}
		if i := strings.IndexFunc(got.out+got.err, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }); i >= 0 {
			t.Errorf("%s prints %q", args, got.out+got.err)
		}
		if strings.Contains(got.out, "Malformed") || strings.Contains(got.out, "shards-1") {
			t.Errorf("%s prints what has a malformed name: %q", args, got.out)
		}
		var pods corev1.PodList
		var err error
		switch args {
		case "pods shards -o json":
			err = json.Unmarshal([]byte(got.out), &pods)
		case "pods shards -o yaml", "pods shards -o kyaml":
			err = yaml.Unmarshal([]byte(got.out), &pods)
		default:
			continue
		}
		if got.out != "refused" && (err != nil || len(pods.Items) != 1 || pods.Items[0].Status.Message != message) {
			t.Errorf("%s changes the text: %q, %v", args, got.out, err)
		}
	}
}
