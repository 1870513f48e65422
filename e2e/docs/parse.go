package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// Block is a block of a page.
type Block struct {
	// Line is that of its first line of text, from 1.
	Line int
	// Lang is what its fence says: sh, text, yaml or nothing.
	Lang string
	Text string
	// By is the folder of the tests that show it, where it isn't run here.
	By string
	// Prints is what a block of commands prints; nil: the page doesn't say.
	Prints *string
}

var by = regexp.MustCompile(`^<!-- by: (\S+) -->$`)

// Parse finds the blocks of a page. What a block of commands prints becomes part of it.
func Parse(page string) ([]Block, error) {
	var blocks []Block
	lines := strings.Split(page, "\n")
	tests, last := "", -2 // the comment above, and where the last block ended
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if found := by.FindStringSubmatch(line); found != nil {
			tests = found[1]
			continue
		}
		lang, fenced := strings.CutPrefix(line, "```")
		if !fenced {
			if line != "" {
				tests = ""
			}
			continue
		}
		block := Block{Line: i + 2, Lang: lang, By: tests}
		end, err := block.read(lines, i)
		if err != nil {
			return nil, err
		}
		if lang == "text" && last == i-1 && blocks[len(blocks)-1].Lang == "sh" {
			blocks[len(blocks)-1].Prints = &block.Text
		} else {
			blocks = append(blocks, block)
		}
		i, last, tests = end, end, ""
	}
	return blocks, nil
}

// read takes the lines up to the closing fence, less the indentation of the opening one, and
// returns where that is.
func (b *Block) read(lines []string, fence int) (end int, err error) {
	indent := lines[fence][:strings.Index(lines[fence], "```")]
	var text strings.Builder
	for i := fence + 1; i < len(lines); i++ {
		if strings.TrimSpace(lines[i]) == "```" {
			b.Text = text.String()
			return i, nil
		}
		text.WriteString(strings.TrimPrefix(lines[i], indent) + "\n")
	}
	return 0, fmt.Errorf("line %d: the block has no end", fence+1)
}

// refusals are how the output of a command that fails begins.
var refusals = regexp.MustCompile(`^([Ee]rror|The .* is invalid)`)

// Fails says whether the commands must fail, by what they print.
func (b *Block) Fails() bool { return b.Prints != nil && refusals.MatchString(*b.Prints) }

// Matches says whether an output is what the page shows, where "..." stands for anything. Blanks at
// the ends of lines, and their number between columns, don't count.
func Matches(shown, output string) bool {
	var pattern strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(shown), "\n") {
		if strings.TrimSpace(line) == "..." {
			pattern.WriteString(`(?:.*\n)*?`)
			continue
		}
		parts := strings.Split(strings.Join(strings.Fields(line), " "), "...")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		pattern.WriteString(strings.Join(parts, ".*") + "\n")
	}
	var plain strings.Builder
	for line := range strings.Lines(output) {
		plain.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return regexp.MustCompile(`^` + pattern.String() + `$`).MatchString(plain.String())
}
