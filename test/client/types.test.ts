/** The types of the client SDK. The type checker of `npm run lint` tests them; nothing happens when they run. */
import { describe, expectTypeOf, test } from 'vitest';
import type {
  Answer,
  Body,
  Connection,
  ConnectionEvents,
  ConnectionOptions,
  ConnectionType,
  ContentFormat,
  ErrorCode,
  LogCallback,
  LogMessage,
  MdnsAction,
  MdnsResult,
  NoChannelsError,
  PathKind,
  Stream,
  SvcClient,
  SvcError,
  TcpTunnel,
} from '../../client/node.ts';

describe('the type', () => {
  test('ConnectionType', () => {
    expectTypeOf<ConnectionType>().toEqualTypeOf<'RELAY' | 'DIRECT'>();
    expectTypeOf<Connection['getType']>().returns.toEqualTypeOf<ConnectionType>();
  });

  test('Connection', () => {
    expectTypeOf<SvcClient['createConnection']>().returns.toEqualTypeOf<Connection>();
    expectTypeOf<SvcClient['createConnection']>().parameter(0).toEqualTypeOf<ConnectionOptions | string | undefined>();
    expectTypeOf<Connection>().toHaveProperty('updateOptions').parameter(0).toExtend<object | string>();
    expectTypeOf<Connection>().toHaveProperty('connect').returns.resolves.toEqualTypeOf<void>();
  });

  test('ConnectionEvents', () => {
    type Names = 'waiting' | 'open' | 'path' | 'rest' | 'resume' | 'cramped' | 'relieved' | 'close';
    expectTypeOf<keyof ConnectionEvents>().toEqualTypeOf<Names>();
    expectTypeOf<ConnectionEvents['path']['kind']>().toEqualTypeOf<PathKind>();
  });

  test('MdnsAction', () => {
    expectTypeOf<MdnsAction>().toEqualTypeOf<0 | 1 | 2>();
    expectTypeOf<MdnsResult['action']>().toEqualTypeOf<MdnsAction>();
  });

  test('Stream', () => {
    expectTypeOf<Connection['openStream']>().returns.toEqualTypeOf<Stream>();
    expectTypeOf<Stream>().toHaveProperty('readAll').returns.resolves.toExtend<Uint8Array>();
  });

  test('TcpTunnel', () => {
    expectTypeOf<Connection['createTcpTunnel']>().returns.toEqualTypeOf<TcpTunnel>();
    expectTypeOf<TcpTunnel>().toHaveProperty('getLocalPort').returns.toEqualTypeOf<number>();
  });

  test('requests', () => {
    expectTypeOf<Connection['get']>().returns.resolves.toEqualTypeOf<Answer>();
    expectTypeOf<Connection['observe']>().returns.toExtend<AsyncIterable<Answer>>();
    expectTypeOf<Connection['put']>().parameter(1).toEqualTypeOf<Body | undefined>();
    expectTypeOf<Answer>().toHaveProperty('status').toEqualTypeOf<number>();
    expectTypeOf<Answer>().toHaveProperty('text').toEqualTypeOf<string>();
  });

  test('ContentFormat', () => {
    type Names = 'TEXT_PLAIN' | 'APPLICATION_XML' | 'APPLICATION_OCTET_STREAM' | 'APPLICATION_CBOR';
    expectTypeOf<typeof ContentFormat>().toExtend<Readonly<Record<Names, number>>>();
  });

  test('SvcError', () => {
    expectTypeOf<SvcError>().toExtend<Error>();
    expectTypeOf<SvcError>().toHaveProperty('code').toEqualTypeOf<string>();
  });

  test('NoChannelsError', () => {
    expectTypeOf<NoChannelsError>().toExtend<SvcError>();
    expectTypeOf<NoChannelsError>().toHaveProperty('remoteChannelErrorCode').toEqualTypeOf<ErrorCode>();
  });

  test('LogCallback', () => {
    expectTypeOf<LogCallback>().toEqualTypeOf<(message: LogMessage) => void>();
    expectTypeOf<SvcClient['setLogCallback']>().parameter(0).toEqualTypeOf<LogCallback | null>();
  });
});
