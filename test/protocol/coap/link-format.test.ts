/** CoRE Link Format against the examples of RFC 6690 §5 and the filters of §4.1; hostile documents. */
import { describe, expect, test } from 'vitest';
import { attributeOf, type CoreLink, decodeLinks, encodeLinks, filterLinks } from '../../../protocol/coap/index.ts';

/** RFC 6690 §5, as wrapped there. */
const SENSORS = `</sensors>;ct=40;title="Sensor Index",
   </sensors/temp>;rt="temperature-c";if="sensor",
   </sensors/light>;rt="light-lux";if="sensor",
   <http://www.example.com/sensors/t123>;anchor="/sensors/temp"
   ;rel="describedby",
   </t>;anchor="/sensors/temp";rel="alternate"`;

const links: readonly CoreLink[] = [
  {
    href: '/sensors',
    attributes: [
      ['ct', '40'],
      ['title', 'Sensor Index'],
    ],
  },
  {
    href: '/sensors/temp',
    attributes: [
      ['rt', 'temperature-c'],
      ['if', 'sensor'],
    ],
  },
  {
    href: '/sensors/light',
    attributes: [
      ['rt', 'light-lux'],
      ['if', 'sensor'],
    ],
  },
  {
    href: 'http://www.example.com/sensors/t123',
    attributes: [
      ['anchor', '/sensors/temp'],
      ['rel', 'describedby'],
    ],
  },
  {
    href: '/t',
    attributes: [
      ['anchor', '/sensors/temp'],
      ['rel', 'alternate'],
    ],
  },
];

describe('documents', () => {
  test('the examples of RFC 6690 §5 are parsed', () => {
    expect(decodeLinks(SENSORS)).toEqual(links);
    expect(decodeLinks('</sensors>;ct=40')).toEqual([{ href: '/sensors', attributes: [['ct', '40']] }]);
    expect(decodeLinks('</firmware/v2.1>;rt="firmware";sz=262144')).toEqual([
      {
        href: '/firmware/v2.1',
        attributes: [
          ['rt', 'firmware'],
          ['sz', '262144'],
        ],
      },
    ]);
    expect(decodeLinks('</sensors/temp>;rt=temperature-c;obs')).toEqual([
      {
        href: '/sensors/temp',
        attributes: [
          ['rt', 'temperature-c'],
          ['obs', null],
        ],
      },
    ]);
    expect(decodeLinks('')).toEqual([]);
  });

  test('written documents survive a round trip', () => {
    const hard: CoreLink[] = [
      {
        href: '/a,b;c',
        attributes: [
          ['title', 'say "so" \\ or, not; <it>'],
          ['obs', null],
          ['x', ''],
        ],
      },
    ];
    expect(decodeLinks(encodeLinks(hard))).toEqual(hard);
    expect(encodeLinks(links)).toBe(SENSORS.replace(/\n\s*/g, ''));
    expect(encodeLinks([])).toBe('');
    expect(attributeOf(links[1]!, 'rt')).toBe('temperature-c');
    expect(attributeOf(hard[0]!, 'obs')).toBe('');
    expect(attributeOf(hard[0]!, 'rt')).toBeUndefined();
  });

  test.each([
    '/x',
    '<',
    '</x',
    '</x>;',
    '</x>,',
    '</x></y>',
    '</x>;=1',
    '</x>;a=',
    '</x>;a="',
    '</x>;a="b\\',
    '</x>;a="b"c',
    ',',
    '</x>;;a',
  ])('malformed: %s', (text) => expect(() => decodeLinks(text)).toThrow(expect.objectContaining({ code: 'PARSE' })));

  test('too many links are refused', () => {
    expect(() => decodeLinks('</>,'.repeat(5000))).toThrow(/more than 4096 links/);
  });

  test.each<CoreLink>([
    { href: '/a>b', attributes: [] },
    { href: '/a b', attributes: [] },
    { href: '/', attributes: [['a b', '1']] },
    { href: '/', attributes: [['title', 'a\nb']] },
  ])('links that the format cannot express are refused: %j', (link) => {
    expect(() => encodeLinks([link])).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });
});

describe('filters', () => {
  const all: readonly CoreLink[] = [
    ...links,
    {
      href: '/b%20c',
      attributes: [
        ['rt', 'light-lux core.sen-light'],
        ['obs', null],
      ],
    },
  ];
  test.each<[string[], number[]]>([
    [['rt=light-lux'], [2, 5]],
    [['rt=core.sen-light'], [5]],
    [['rt=core.*'], [5]],
    [['rt=light'], []],
    [['if=sensor'], [1, 2]],
    [['href=/sensors'], [0]],
    [['href=/sensors*'], [0, 1, 2]],
    [['href=/b c'], [5]],
    [['title=Sensor'], []],
    [['title=Sensor *'], [0]],
    [['anchor=/sensors/temp', 'rel=alternate'], [4]],
    [['if=sensor', 'rt=*c'], []],
    [['obs'], [5]],
    [['obs=1'], []],
    [['nothing=*'], []],
    [[], [0, 1, 2, 3, 4, 5]],
  ])('%j', (query, picked) => {
    expect(filterLinks(all, query)).toEqual(picked.map((index) => all[index]));
  });
});
