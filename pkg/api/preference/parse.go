package preference

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/selectors"
)

// What a preference may have. The manager holds those of all Jobs that wait.
const (
	maxSize  = 1024 // bytes
	maxSteps = 8
)

const (
	space    = " \t\r\n"
	anywhere = "*"
)

// defaultReturning is the time of "return" without one.
const defaultReturning = 10 * time.Minute

// returnWord is the last of several steps, if it's not a selector.
const returnWord = "return"

// withWait is a step that opens after a wait.
var withWait = regexp.MustCompile(`^((?s:.*?))[ \t\r\n]+after[ \t\r\n]+([0-9]{1,5}[hms]([0-9]{1,5}[ms])?([0-9]{1,5}s)?)[ \t\r\n]*$`)

// Parse reads the preference from a Job's annotations. It is nil when the annotation is absent or
// empty. The error is for the user's eyes, and the same as that of the policy jobferry-jobs.
func Parse(annotations map[string]string) (*Preference, error) {
	value := annotations[v1alpha1.AnnotationClusterPreference]
	if value == "" {
		return nil, nil
	}
	if len(value) > maxSize {
		return nil, problem("it's longer than %d bytes", maxSize)
	}
	texts := strings.Split(value, ";")
	if len(texts) > maxSteps {
		return nil, problem("it has more than %d steps", maxSteps)
	}
	p := &Preference{}
	for i, text := range texts {
		if i > 0 && i == len(texts)-1 && p.parseReturn(text) {
			break
		}
		s, err := parseStep(text)
		if err != nil {
			return nil, err
		}
		p.steps = append(p.steps, s)
	}
	if !slices.IsSortedFunc(p.steps, func(a, b step) int { return cmp.Compare(a.after, b.after) }) {
		return nil, problem("a step opens before the one that it follows")
	}
	return p, nil
}

// parseReturn reads "return" or "return after 10m"; false: it's a step.
func (p *Preference) parseReturn(text string) bool {
	word, after := text, defaultReturning
	if parts := withWait.FindStringSubmatch(text); parts != nil {
		wait, err := time.ParseDuration(parts[2])
		if err != nil {
			return false
		}
		word, after = parts[1], wait
	}
	if strings.Trim(word, space) != returnWord {
		return false
	}
	p.returns, p.returning = true, after
	return true
}

func parseStep(text string) (s step, err error) {
	selector := text
	if parts := withWait.FindStringSubmatch(text); parts != nil {
		if s.after, err = time.ParseDuration(parts[2]); err != nil {
			return s, badStep(text)
		}
		selector = parts[1]
	}
	switch selector = strings.Trim(selector, space); selector {
	case "":
		return s, badStep(text)
	case anywhere:
		s.selector = labels.Everything()
	default:
		if s.selector, err = selectors.Parse(selector); err != nil {
			return s, badStep(text)
		}
	}
	return s, nil
}

func badStep(text string) error {
	return problem(`the step "%s" is neither a label selector nor *, alone or with a wait such as "after 5m"`, strings.TrimSpace(text))
}

func problem(format string, args ...any) error {
	return fmt.Errorf("annotation "+v1alpha1.AnnotationClusterPreference+": "+format+
		`; set it to steps such as "tier=owned; region=eu after 5m; * after 30m", or remove it to want all workers alike`, args...)
}
