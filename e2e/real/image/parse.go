package image

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Scratch is the base of a stage that starts from nothing.
const Scratch = "scratch"

// Stage is one FROM of a Dockerfile, with what follows it.
type Stage struct {
	Name, Base string
	Steps      []Step
	// User and Entrypoint are what a container of the stage starts as.
	User       string
	Entrypoint []string
}

// Step is an instruction that changes a stage's files, or what further ones see.
type Step struct {
	// Line is where the Dockerfile has it, from 1.
	Line int
	// Verb is WORKDIR, COPY, RUN or ARG.
	Verb string
	// Flags are --name=value, in order.
	Flags []string
	// Text is the rest, variables and all.
	Text string
}

// Parse reads a Dockerfile. It returns an error for each instruction that Build doesn't know, with
// its line.
func Parse(text string) ([]Stage, error) {
	var stages []Stage
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		number, line := i+1, strings.TrimSpace(lines[i])
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		for strings.HasSuffix(line, `\`) && i+1 < len(lines) {
			i++
			line = strings.TrimSpace(strings.TrimSuffix(line, `\`)) + " " + strings.TrimSpace(lines[i])
		}
		verb, rest, _ := strings.Cut(line, " ")
		if err := instruct(&stages, Step{Line: number, Verb: strings.ToUpper(verb), Text: strings.TrimSpace(rest)}); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if len(stages) == 0 {
		return nil, fmt.Errorf("no FROM")
	}
	return stages, nil
}

func instruct(stages *[]Stage, step Step) error {
	step.takeFlags()
	if step.Verb == "FROM" {
		words := strings.Fields(step.Text)
		switch {
		case len(words) == 1:
			*stages = append(*stages, Stage{Base: words[0]})
		case len(words) == 3 && strings.EqualFold(words[1], "as"):
			*stages = append(*stages, Stage{Base: words[0], Name: words[2]})
		default:
			return fmt.Errorf("FROM %s: want FROM base [AS name]", step.Text)
		}
		return nil
	}
	if len(*stages) == 0 {
		return fmt.Errorf("%s before the first FROM", step.Verb)
	}
	stage := &(*stages)[len(*stages)-1]
	switch step.Verb {
	case "WORKDIR", "COPY", "RUN", "ARG":
		stage.Steps = append(stage.Steps, step)
	case "USER":
		stage.User = step.Text
	case "ENTRYPOINT":
		if err := json.Unmarshal([]byte(step.Text), &stage.Entrypoint); err != nil {
			return fmt.Errorf("ENTRYPOINT %s: only the form [\"program\", ...]: %w", step.Text, err)
		}
	default:
		return fmt.Errorf("%s is not among the instructions known here", step.Verb)
	}
	return nil
}

// takeFlags moves the leading --name=value words from the text to the flags.
func (s *Step) takeFlags() {
	for strings.HasPrefix(s.Text, "--") {
		flag, rest, _ := strings.Cut(s.Text, " ")
		s.Flags, s.Text = append(s.Flags, flag), strings.TrimSpace(rest)
	}
}

// Flag returns the values of the flags of that name.
func (s *Step) Flag(name string) []string {
	var values []string
	for _, flag := range s.Flags {
		if value, found := strings.CutPrefix(flag, "--"+name+"="); found {
			values = append(values, value)
		}
	}
	return values
}
